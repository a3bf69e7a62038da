// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/arena_pool.h"

#include <gtest/gtest.h>

#include <cstring>

#include "framework/device/allocator.h"

namespace treenail {
namespace {

int64_t in_use() { return Allocator::host().stats().bytes_in_use; }

TEST(ArenaPool, OneArenaServesWhoComesOneAfterTheOther) {
  const int64_t before = in_use();
  {
    ArenaPool pool;
    const Arena large = pool.take(1 << 20, nullptr);
    std::memset(large.data, 1, large.bytes);
    pool.give_back(large);
    const Arena small = pool.take(1000, nullptr);
    EXPECT_EQ(small.data, large.data);
    pool.give_back(small);
    EXPECT_EQ(in_use() - before, 1 << 20);
  }
  EXPECT_EQ(in_use(), before);
}

TEST(ArenaPool, WhoComesAtTheSameTimeHasAnArenaOfItsOwn) {
  ArenaPool pool;
  const Arena first = pool.take(5000, nullptr), second = pool.take(4000, nullptr);
  EXPECT_NE(first.data, second.data);
  pool.give_back(first);
  pool.give_back(second);
  // The one preferred, else the smallest that fits.
  EXPECT_EQ(pool.take(3000, first.data).data, first.data);
  pool.give_back(first);
  EXPECT_EQ(pool.take(3000, nullptr).data, second.data);
  EXPECT_EQ(pool.take(4500, second.data).data, first.data);
  pool.give_back(first);
  pool.give_back(second);
}

TEST(ArenaPool, ALargerOneTakesThePlaceOfOneThatDoesNotFit) {
  const int64_t before = in_use();
  ArenaPool pool;
  pool.give_back(pool.take(4096, nullptr));
  const Arena larger = pool.take(8192, nullptr);
  EXPECT_EQ(in_use() - before, 8192);
  pool.give_back(larger);
}

TEST(ArenaPool, OneFarTooLargeIsNotKept) {
  const int64_t before = in_use();
  ArenaPool pool;
  pool.give_back(pool.take(1 << 20, nullptr));
  for (int i = 0; i < 16; ++i) pool.give_back(pool.take(4096, nullptr));
  EXPECT_LE(in_use() - before, 1 << 20);
  for (int i = 0; i < 2; ++i) pool.give_back(pool.take(4096, nullptr));
  EXPECT_EQ(in_use() - before, 4096);
}

TEST(ArenaPool, NothingIsTakenForNothing) {
  ArenaPool pool;
  const Arena none = pool.take(0, nullptr);
  EXPECT_EQ(none.data, nullptr);
  pool.give_back(none);
}

}  // namespace
}  // namespace treenail
