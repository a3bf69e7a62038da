// SPDX-License-Identifier: Apache-2.0
// What the tests of the thread pool have in common.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "framework/base/thread_pool.h"
#include "tests/support/sanitizers.h"

namespace treenail {

inline constexpr double kLarge = 1e9;  // ns: always worth waking helpers

#if defined(TREENAIL_TSAN)
inline constexpr int kScale = 1;
#else
inline constexpr int kScale = 10;
#endif

inline ThreadPool& pool_of(int threads) {
  ThreadPool& pool = ThreadPool::instance();
  pool.set_num_threads(threads);
  return pool;
}

inline void expect_exactly_once(ThreadPool& pool, int64_t chunks, double cost) {
  const std::unique_ptr<std::atomic<int>[]> runs(new std::atomic<int>[chunks]());
  pool.run_chunks(
      chunks, [&](int64_t i) { runs[i].fetch_add(1); }, cost);
  for (int64_t i = 0; i < chunks; ++i) ASSERT_EQ(runs[i].load(), 1) << i << " of " << chunks;
}

}  // namespace treenail
