// SPDX-License-Identifier: Apache-2.0
// The allocator: classes, reuse without system calls, the limit, absurd sizes, many threads, fork.
#include "framework/device/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/device/size_classes.h"

namespace treenail {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(SizeClasses, EachRequestGetsTheSmallestThatHoldsIt) {
  using namespace size_classes;
  for (int index = 1; index < kClasses; ++index) {
    const size_t below = size_of(index - 1);
    ASSERT_LT(below, size_of(index)) << index;
    if (size_of(index) > kLargest) break;
    ASSERT_EQ(index_of(size_of(index)), index);
    ASSERT_EQ(index_of(below + 1), index);
    ASSERT_EQ(size_of(index) % 64, 0u);
    if (index >= kMediumEnd) {
      ASSERT_EQ(size_of(index) % kHugePage, 0u);
    }
    if (index > kFineClasses && below > 16 * kHugePage) {
      ASSERT_LE(size_of(index), below / 8 * 9 + 8);
    }
  }
  EXPECT_EQ(index_of(0), 0);
}

class AllocatorTest : public ::testing::Test {
 protected:
  void TearDown() override { allocator_.set_limit(0); }
  std::string refusal(size_t bytes) {
    try {
      allocator_.deallocate(allocator_.allocate(bytes), bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kResourceExhausted);
      return error.message();
    }
    return "";
  }
  Allocator& allocator_ = Allocator::host();
};

TEST_F(AllocatorTest, BlocksAreAlignedWritableAndApart) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes = 1; bytes < 5 * kMiB; bytes = bytes * 3 / 2 + 1) {
    auto* block = static_cast<unsigned char*>(allocator_.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    if (bytes > kMiB) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (2 * kMiB), 0u);
    }
    std::memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    for (size_t at = 0; at < bytes; at += 61) ASSERT_EQ(block[at], i);
    allocator_.deallocate(block, bytes);
  }
}

TEST_F(AllocatorTest, ZeroBytesIsAValidPointer) {
  void* a = allocator_.allocate(0);
  void* b = allocator_.allocate(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  allocator_.deallocate(a, 0);
  allocator_.deallocate(b, 0);
  allocator_.deallocate(nullptr, 0);
}

TEST_F(AllocatorTest, SteadyWorkMakesNoSystemCall) {
  const size_t sizes[] = {1, 100, 4096, 40'000, 900'000, 3 * kMiB, 40 * kMiB};
  const auto round = [&] {
    void* blocks[std::size(sizes)];
    for (size_t i = 0; i < std::size(sizes); ++i) blocks[i] = allocator_.allocate(sizes[i]);
    for (size_t i = 0; i < std::size(sizes); ++i) allocator_.deallocate(blocks[i], sizes[i]);
  };
  round();
  const int64_t calls = allocator_.stats().system_calls;
  const int64_t in_use = allocator_.stats().bytes_in_use;
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(allocator_.stats().system_calls, calls);
  EXPECT_EQ(allocator_.stats().bytes_in_use, in_use);
}

TEST_F(AllocatorTest, CountsUseCacheAndPeak) {
  allocator_.release_cache();
  const AllocatorStats before = allocator_.stats();
  void* block = allocator_.allocate(3 * kMiB);
  EXPECT_EQ(allocator_.stats().bytes_in_use - before.bytes_in_use, int64_t{4} << 20);
  EXPECT_GE(allocator_.stats().peak_bytes, allocator_.stats().bytes_in_use);
  allocator_.deallocate(block, 3 * kMiB);
  EXPECT_EQ(allocator_.stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(allocator_.stats().bytes_cached - before.bytes_cached, int64_t{4} << 20);
  allocator_.release_cache();
  EXPECT_EQ(allocator_.stats().bytes_cached, before.bytes_cached);
}

TEST_F(AllocatorTest, LimitIsHeldAndSaid) {
  const int64_t in_use = allocator_.stats().bytes_in_use;
  allocator_.set_limit(in_use + (8 << 20));
  EXPECT_EQ(allocator_.limit(), in_use + (8 << 20));
  void* held = allocator_.allocate(4 * kMiB);
  const std::string text = refusal(5 * kMiB);
  EXPECT_EQ(text, "out of memory: 5242880 bytes asked, " + std::to_string(in_use + (4 << 20)) +
                      " in use, limit " + std::to_string(in_use + (8 << 20)) +
                      " (TREENAIL_MEMORY_LIMIT raises it)");
  EXPECT_EQ(refusal(4 * kMiB), "");
  allocator_.deallocate(held, 4 * kMiB);
  EXPECT_EQ(refusal(8 * kMiB), "");
  EXPECT_EQ(allocator_.stats().bytes_in_use, in_use);
}

TEST_F(AllocatorTest, CachedBlocksMakeRoomForOtherSizes) {
  allocator_.release_cache();
  const AllocatorStats before = allocator_.stats();
  allocator_.set_limit(before.bytes_in_use + before.bytes_cached + (16 << 20));
  for (size_t size = 2; size <= 16; size += 2) EXPECT_EQ(refusal(size * kMiB), "") << size;
  const AllocatorStats after = allocator_.stats();
  EXPECT_LE(after.bytes_in_use + after.bytes_cached, allocator_.limit());
}

TEST_F(AllocatorTest, AbsurdSizesAreRefused) {
  for (const size_t bytes : {std::numeric_limits<size_t>::max(), size_t{1} << 63, size_t{1} << 62,
                             (size_t{1} << 60) + 1, size_t{1} << 60, size_t{1} << 50}) {
    EXPECT_NE(refusal(bytes).find("out of memory: " + std::to_string(bytes)), std::string::npos)
        << bytes;
  }
}

TEST_F(AllocatorTest, WhatTheSystemRefusesIsAnError) {
  allocator_.set_limit(std::numeric_limits<int64_t>::max());
  const AllocatorStats before = allocator_.stats();
  EXPECT_NE(refusal(size_t{1} << 55).find("the system refused"), std::string::npos);
  EXPECT_EQ(allocator_.stats().bytes_in_use, before.bytes_in_use);
}

TEST_F(AllocatorTest, DefaultLimitIsBelowRam) {
  EXPECT_GT(allocator_.limit(), int64_t{16} << 20);
  EXPECT_LT(allocator_.limit(), int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
}

TEST_F(AllocatorTest, ManyThreadsAllocateAndFreeEachOthersBlocks) {
  const int64_t in_use = allocator_.stats().bytes_in_use;
  constexpr int kThreads = 4;
  constexpr int kSlots = 64;
  std::atomic<unsigned char*> slots[kSlots] = {};
  constexpr size_t kSizes[] = {48, 500, 3000, 30'000, 70'000};
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint32_t state = static_cast<uint32_t>(t) + 1;
      for (int i = 0; i < 5'000; ++i) {
        state = state * 1664525u + 1013904223u;
        const uint32_t slot = (state >> 16) % kSlots;
        const size_t bytes = kSizes[slot % std::size(kSizes)];
        auto* mine = static_cast<unsigned char*>(allocator_.allocate(bytes));
        std::memset(mine, static_cast<int>(slot), bytes);
        unsigned char* other = slots[slot].exchange(mine);
        if (other == nullptr) continue;
        for (size_t at = 0; at < bytes; at += 37) damaged += other[at] != slot;
        allocator_.deallocate(other, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int slot = 0; slot < kSlots; ++slot) {
    if (slots[slot] != nullptr)
      allocator_.deallocate(slots[slot], kSizes[slot % std::size(kSizes)]);
  }
  EXPECT_EQ(damaged.load(), 0);
  EXPECT_EQ(allocator_.stats().bytes_in_use, in_use);
}

struct FreesAtThreadEnd {
  void* block = nullptr;
  ~FreesAtThreadEnd() {
    if (block != nullptr) Allocator::host().deallocate(block, 100);
  }
};

// A thread's destructors may free after the allocator's own thread cache has gone.
TEST_F(AllocatorTest, ThreadsMayFreeWhileTheyEnd) {
  const int64_t in_use = allocator_.stats().bytes_in_use;
  for (int i = 0; i < 20; ++i) {
    std::thread([this] {
      thread_local FreesAtThreadEnd first;  // made before the cache, so destroyed after it
      first.block = allocator_.allocate(100);
    }).join();
  }
  EXPECT_EQ(allocator_.stats().bytes_in_use, in_use);
}

TEST_F(AllocatorTest, ForkBesideABusyThread) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) allocator_.deallocate(allocator_.allocate(70'000), 70'000);
  });
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a deadlock is a failure, not a hang
      for (const size_t bytes : {size_t{100}, size_t{70'000}, 3 * kMiB}) {
        allocator_.deallocate(allocator_.allocate(bytes), bytes);
      }
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop.store(true);
  other.join();
}

}  // namespace
}  // namespace treenail
