// SPDX-License-Identifier: Apache-2.0
// Forms of a buffer's bytes: made at the second use, once, and gone when the bytes may change.
#include "framework/tensor/prepacked.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "framework/tensor/tensor.h"
#include "tests/support/child.h"

namespace treenail {
namespace {

const char kMaker = 0;

TEST(PrepackedForms, AreMadeAtTheSecondUse) {
  PrepackedForms forms;
  int made = 0;
  const auto make = [&](std::byte* to) {
    ++made;
    std::memset(to, 7, 100);
  };
  EXPECT_EQ(forms.find({&kMaker, {1}}, 100, make), nullptr);
  const std::byte* const first = forms.find({&kMaker, {1}}, 100, make);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(static_cast<int>(first[99]), 7);
  EXPECT_EQ(forms.find({&kMaker, {1}}, 100, make), first);
  EXPECT_EQ(made, 1);
  // Another detail is another form.
  EXPECT_EQ(forms.find({&kMaker, {2}}, 100, make), nullptr);
  EXPECT_EQ(made, 1);
}

TEST(PrepackedForms, AreMadeOnceForManyThreads) {
  PrepackedForms forms;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int use = 0; use < 100; ++use) forms.find({&kMaker, {}}, 8, [&](std::byte*) { ++made; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

// Another thread is in the middle of making the form when the process forks.
TEST(PrepackedForms, AreMadeAnewInAChildWhoseMakerIsGone) {
  PrepackedForms forms;
  const PackKey key{&kMaker, {}};
  std::atomic<bool> making = false, end = false;
  forms.find(key, 8, [](std::byte*) {});
  std::thread maker([&] {
    forms.find(key, 8, [&](std::byte* to) {
      std::memset(to, 1, 8);
      making = true;
      while (!end) std::this_thread::yield();
    });
  });
  while (!making) std::this_thread::yield();
  EXPECT_EQ(test::in_child([&] {
              const auto make = [](std::byte* to) { std::memset(to, 2, 8); };
              if (forms.find(key, 8, make) != nullptr) return 1;
              const std::byte* const made = forms.find(key, 8, make);
              if (made == nullptr || static_cast<int>(*made) != 2) return 2;
              forms.clear();
              return forms.find(key, 8, make) == nullptr ? 0 : 3;
            }),
            0);
  end = true;
  maker.join();
  const std::byte* const made = forms.find(key, 8, [](std::byte*) { FAIL(); });
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(static_cast<int>(*made), 1);
}

TEST(PrepackedForms, MemoryThatIsNotThereMakesNone) {
  PrepackedForms forms;
  const auto make = [](std::byte*) { FAIL(); };
  const size_t absurd = size_t{1} << 50;
  EXPECT_EQ(forms.find({&kMaker, {}}, absurd, make), nullptr);
  EXPECT_EQ(forms.find({&kMaker, {}}, absurd, make), nullptr);
}

TEST(PrepackedForms, BelongToBytesThatStay) {
  Tensor t(DType::kFloat32, Shape({4}));
  EXPECT_TRUE(t.exclusive());
  EXPECT_EQ(t.buffer()->prepacked(), nullptr);
  t.buffer()->keep_prepacked();
  EXPECT_FALSE(t.exclusive());
  EXPECT_NE(t.buffer()->prepacked(), nullptr);
  EXPECT_EQ(t.buffer()->prepacked(), t.buffer()->prepacked());
  t.buffer()->forget_prepacked();
  EXPECT_TRUE(t.exclusive());
  EXPECT_EQ(t.buffer()->prepacked(), nullptr);

  float borrowed[4] = {};
  const auto buffer = Buffer::borrow(borrowed, sizeof(borrowed), nullptr, nullptr);
  buffer->keep_prepacked();
  EXPECT_EQ(buffer->prepacked(), nullptr);
}

}  // namespace
}  // namespace treenail
