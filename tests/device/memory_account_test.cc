// SPDX-License-Identifier: Apache-2.0
#include "framework/device/memory_account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

TEST(MemoryAccountTest, SaysWhatIsHeldAskedForAndAllowed) {
  const IntrusivePtr<MemoryAccount> account(new MemoryAccount("the sessions of \"a\" at w", 100));
  account->charge(70);
  account->charge(30);
  EXPECT_EQ(error_of([&] { account->charge(1); }),
            "ResourceExhausted: the sessions of \"a\" at w hold 100 bytes and ask for 1 more; they "
            "may hold 100 (--max-held-bytes)");
  EXPECT_EQ(account->held(), 100);
  account->discharge(70);
  EXPECT_EQ(error_of([&] { account->charge(size_t{1} << 62); }).substr(0, 18),
            "ResourceExhausted:");
  account->charge(70);
  account->discharge(70);
  account->discharge(30);
  EXPECT_EQ(account->held(), 0);
}

TEST(MemoryAccountTest, WithoutALimitAnythingGoes) {
  const IntrusivePtr<MemoryAccount> account(new MemoryAccount("x", 0));
  const MemoryCharge charge(account.get(), size_t{1} << 60);
  EXPECT_EQ(account->held(), int64_t{1} << 60);
  EXPECT_EQ(error_of([&] { account->charge(~size_t{0}); }).substr(0, 18), "ResourceExhausted:");
  EXPECT_EQ(account->held(), int64_t{1} << 60);
}

TEST(MemoryAccountTest, IsOfTheThreadInTheScopeAlone) {
  const IntrusivePtr<MemoryAccount> outer(new MemoryAccount("outer", 0));
  const IntrusivePtr<MemoryAccount> inner(new MemoryAccount("inner", 0));
  EXPECT_EQ(MemoryAccount::current(), nullptr);
  {
    const MemoryScope scope(outer.get());
    {
      const MemoryScope nested(inner.get());
      EXPECT_EQ(MemoryAccount::current(), inner.get());
      MemoryAccount* elsewhere = inner.get();
      std::thread([&] { elsewhere = MemoryAccount::current(); }).join();
      EXPECT_EQ(elsewhere, nullptr);
    }
    EXPECT_EQ(MemoryAccount::current(), outer.get());
  }
  EXPECT_EQ(MemoryAccount::current(), nullptr);
}

TEST(MemoryAccountTest, NeverMoreThanAllowedBySeveralThreads) {
  const IntrusivePtr<MemoryAccount> account(new MemoryAccount("x", 1000));
  std::atomic<int64_t> held{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (error_of([&] { account->charge(400); }) != "no error") continue;
        const int64_t now = held.fetch_add(400) + 400;
        int64_t known = most.load();
        while (now > known && !most.compare_exchange_weak(known, now)) {
        }
        held.fetch_sub(400);
        account->discharge(400);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 800);
  EXPECT_EQ(account->held(), 0);
}

TEST(MemoryAccountTest, LivesAsLongAsWhatIsCharged) {
  auto* const account = new MemoryAccount("x", 0);
  IntrusivePtr<MemoryAccount> owner(account);
  account->charge(8);
  owner.reset();
  EXPECT_EQ(account->held(), 8);
  account->discharge(8);
}

}  // namespace
}  // namespace treenail
