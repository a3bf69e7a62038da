// SPDX-License-Identifier: Apache-2.0
#include "framework/tensor/charged.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/device/allocator.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

IntrusivePtr<MemoryAccount> account_of(int64_t limit = 0) {
  return IntrusivePtr<MemoryAccount>(new MemoryAccount("x", limit));
}

Tensor strings(const std::vector<std::string>& values) {
  Tensor tensor(DType::kString, Shape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.data<StringElement>()[i] = StringElement(values[i]);
  return tensor;
}

// Small ones lie behind their header, large ones apart.
TEST(ChargedTest, BuffersCountFromFirstToLastShare) {
  for (const int64_t elements : {int64_t{0}, int64_t{5}, int64_t{100'000}}) {
    const auto account = account_of();
    {
      Tensor kept;
      {
        const MemoryScope scope(account.get());
        kept = Tensor(DType::kFloat32, Shape({elements}));
      }
      EXPECT_GE(account->held(), 4 * elements);
      EXPECT_LE(account->held(), 4 * elements + 64);
      Tensor share = kept;
      kept = Tensor();
      EXPECT_GT(account->held(), 0);
      std::thread([last = std::move(share)]() mutable { last = Tensor(); }).join();
    }
    EXPECT_EQ(account->held(), 0);
  }
}

TEST(ChargedTest, ARefusalTakesNothing) {
  const auto account = account_of(1 << 20);
  const MemoryScope scope(account.get());
  const int64_t before = Allocator::host().stats().bytes_in_use;
  for (const int64_t elements : {1 << 18, 1 << 30}) {
    EXPECT_EQ(error_of([&] { Tensor(DType::kFloat32, Shape({elements})); }).substr(0, 18),
              "ResourceExhausted:");
  }
  Tensor one(DType::kString, Shape());
  EXPECT_EQ(error_of([&] {
              *one.data<StringElement>() = StringElement(std::string(2 << 20, 'x'));
            }).substr(0, 18),
            "ResourceExhausted:");
  one = Tensor();
  EXPECT_EQ(account->held(), 0);
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, before);
  // What the process has no room for is not held either.
  const auto open = account_of();
  const MemoryScope unlimited(open.get());
  EXPECT_EQ(error_of([&] { Tensor(DType::kFloat32, Shape({int64_t{1} << 50})); }).substr(0, 18),
            "ResourceExhausted:");
  EXPECT_EQ(open->held(), 0);
}

TEST(ChargedTest, WhatWasNobodysIsChargedOnce) {
  const auto first = account_of(), second = account_of();
  Tensor value(DType::kFloat64, Shape({1000}));
  const void* const bytes = value.raw();
  value = charged(value, *first);
  EXPECT_EQ(value.raw(), bytes);
  EXPECT_GE(first->held(), 8000);
  const int64_t held = first->held();
  value = charged(charged(value, *first), *second);
  EXPECT_EQ(first->held(), held);
  EXPECT_EQ(second->held(), 0);
  value = Tensor();
  EXPECT_EQ(first->held(), 0);
  const auto small = account_of(100);
  const Tensor large(DType::kFloat64, Shape({1000}));
  EXPECT_EQ(error_of([&] { charged(large, *small); }).substr(0, 18), "ResourceExhausted:");
  EXPECT_EQ(charged(Tensor(), *small).buffer().get(), nullptr);
}

// An element that is taken out of what was charged goes on counting.
TEST(ChargedTest, StringsCountWhereverTheyGo) {
  const auto account = account_of();
  const std::string word(1000, 'w');
  Tensor elsewhere(DType::kString, Shape());
  {
    const Tensor value = charged(strings({word, "", word}), *account);
    EXPECT_EQ(value.data<StringElement>()[2].view(), word);
    EXPECT_EQ(value.data<StringElement>()[1].view(), "");
    EXPECT_GE(account->held(), 2000);
    *elsewhere.data<StringElement>() = value.data<StringElement>()[0];
  }
  EXPECT_GE(account->held(), 1000);
  EXPECT_LT(account->held(), 1100);
  elsewhere = Tensor();
  EXPECT_EQ(account->held(), 0);
}

// Against a plain sum: tensors made, shared, dropped and adopted at random for two accounts.
TEST(ChargedTest, RandomProgramsAddUp) {
  std::mt19937 random(7);
  const IntrusivePtr<MemoryAccount> accounts[2] = {account_of(), account_of()};
  struct Held {
    Tensor value;
    int owner = -1;
    int64_t least = 0;
  };
  std::vector<Held> all;
  for (int step = 0; step < 20'000; ++step) {
    const int who = static_cast<int>(random() % 2);
    const auto size = static_cast<int64_t>(random() % 40'000);
    switch (random() % 4) {
      case 0: {
        const MemoryScope scope(accounts[who].get());
        all.push_back({Tensor(DType::kUInt8, Shape({size})), who, size});
        break;
      }
      case 1:
        all.push_back({Tensor(DType::kUInt8, Shape({size})), -1, size});
        break;
      case 2:
        if (!all.empty()) {
          Held& one = all[random() % all.size()];
          one.value = charged(one.value, *accounts[who]);
          if (one.owner < 0) one.owner = who;
        }
        break;
      default:
        if (!all.empty()) {
          std::swap(all[random() % all.size()], all.back());
          all.pop_back();
        }
    }
    if (step % 500 != 0) continue;
    for (int i = 0; i < 2; ++i) {
      int64_t bytes = 0, count = 0;
      for (const Held& one : all) {
        if (one.owner != i) continue;
        bytes += one.least;
        ++count;
      }
      ASSERT_EQ(accounts[i]->held(), bytes + 64 * count);
    }
  }
  all.clear();
  EXPECT_EQ(accounts[0]->held(), 0);
  EXPECT_EQ(accounts[1]->held(), 0);
}

}  // namespace
}  // namespace treenail
