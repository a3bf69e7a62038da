// SPDX-License-Identifier: Apache-2.0
// The pool under stress: each chunk exactly once, errors of the lowest chunk, cancellation, fork,
// changing thread counts. Several regions at once: thread_pool_regions_test.cc. Run under
// ThreadSanitizer as well.
#include "framework/base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "tests/base/pool_support.h"
#include "tests/support/sanitizers.h"

namespace treenail {
namespace {

TEST(ThreadPool, EachChunkExactlyOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool& pool = pool_of(threads);
    for (int round = 0; round < 200 * kScale; ++round) {
      for (const int64_t chunks : {0, 1, 2, 3, 7, 64}) {
        expect_exactly_once(pool, chunks, round % 2 == 0 ? kLarge : 10'000);
      }
    }
    expect_exactly_once(pool, 100'000, kLarge);
  }
}

// The job's description lies on the caller's stack: a helper that comes late must not touch the
// next one.
TEST(ThreadPool, JobsOfDifferentSizesFollowEachOtherClosely) {
  ThreadPool& pool = pool_of(4);
  std::atomic<int64_t> sum{0};
  int64_t expected = 0;
  for (int round = 0; round < 5'000 * kScale; ++round) {
    const int64_t chunks = 2 + round % 5;
    pool.run_chunks(
        chunks, [&sum, round](int64_t i) { sum.fetch_add(i + round); }, kLarge);
    expected += chunks * (chunks - 1) / 2 + chunks * round;
  }
  EXPECT_EQ(sum.load(), expected);
}

TEST(ThreadPool, HelpersTakePart) {
  ThreadPool& pool = pool_of(2);
  std::set<std::thread::id> seen;
  for (int attempt = 0; attempt < 100 && seen.size() < 2; ++attempt) {
    std::thread::id ids[2];
    std::atomic<int> begun{0};
    pool.run_chunks(
        2,
        [&](int64_t i) {
          ids[i] = std::this_thread::get_id();
          begun.fetch_add(1);
          const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
          while (begun.load() < 2 && std::chrono::steady_clock::now() < until) {
            std::this_thread::yield();
          }
        },
        kLarge);
    seen.insert(ids, ids + 2);
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(pool.started_helpers(), 1);
}

TEST(ThreadPool, SmallWorkStaysOnTheCaller) {
  ThreadPool& pool = pool_of(4);
  const std::thread::id caller = std::this_thread::get_id();
  pool.run_chunks(
      8, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); }, /*cost_ns=*/100);
}

TEST(ThreadPool, LowestChunksExceptionIsRethrown) {
  for (const int threads : {1, 4}) {
    ThreadPool& pool = pool_of(threads);
    for (int round = 0; round < 300 * kScale; ++round) {
      std::atomic<int> below{0};
      try {
        pool.run_chunks(
            16,
            [&below](int64_t i) {
              if (i < 3) below.fetch_add(1);
              if (i >= 3) throw invalid_argument("chunk ", i);
            },
            kLarge);
        FAIL() << "no Error";
      } catch (const Error& error) {
        ASSERT_EQ(error.message(), "chunk 3");
      }
      ASSERT_EQ(below.load(), 3);
    }
    expect_exactly_once(pool, 16, kLarge);
  }
}

TEST(ThreadPool, NoChunkBeginsAfterCancellation) {
  for (const int threads : {1, 4}) {
    ThreadPool& pool = pool_of(threads);
    CancellationToken token;
    std::atomic<int> begun{0};
    try {
      pool.run_chunks(
          1000,
          [&](int64_t i) {
            if (i == 5) token.cancel(Code::kDeadlineExceeded, "too late");
            begun.fetch_add(1);
            if (i > 5) {
              while (!token.cancelled()) std::this_thread::yield();
            }
          },
          kLarge, &token);
      FAIL() << "no Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
    }
    EXPECT_LE(begun.load(), 6 + threads);
  }
}

TEST(ThreadPool, CancelledTokenRunsNothing) {
  CancellationToken token;
  token.cancel(Code::kCancelled, "before");
  for (const int threads : {1, 4}) {
    int begun = 0;
    EXPECT_THROW(pool_of(threads).run_chunks(
                     4, [&](int64_t) { ++begun; }, kLarge, &token),
                 Error);
    EXPECT_EQ(begun, 0);
  }
}

TEST(ThreadPool, ThreadCountMayChangeBetweenRegions) {
  ThreadPool& pool = ThreadPool::instance();
  for (int round = 0; round < 30 * kScale; ++round) {
    const int threads = 1 + round * 7 % 9;
    pool.set_num_threads(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    expect_exactly_once(pool, 20, kLarge);
    if (threads > 1) {
      EXPECT_EQ(pool.started_helpers(), threads - 1);
    }
  }
  EXPECT_THROW(pool.set_num_threads(0), Error);
  EXPECT_THROW(pool.set_num_threads(1025), Error);
}

std::atomic<int> hook_calls{0};
thread_local int last_hook = -1;
template <int kIndex>
void count_hook() {
  hook_calls.fetch_add(1);
  last_hook = kIndex;
}

// A helper may be anywhere between two regions when a hook is added: the more hooks, the more
// places.
TEST(ThreadPool, HooksRunOnceOnEveryHelperBeforeItsNextChunk) {
  void (*const hooks[])() = {count_hook<0>, count_hook<1>, count_hook<2>, count_hook<3>,
                             count_hook<4>, count_hook<5>, count_hook<6>, count_hook<7>};
  const int count = static_cast<int>(std::size(hooks));
  ThreadPool& pool = pool_of(4);
  expect_exactly_once(pool, 64, kLarge);  // some helpers exist before the hooks do
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> unhooked{0};
  for (int index = 0; index < count; ++index) {
    pool.add_thread_start_hook(hooks[index]);
    pool.add_thread_start_hook(hooks[index]);
    for (int round = 0; round < 10 * kScale; ++round) {
      pool.run_chunks(
          16,
          [&](int64_t) {
            if (last_hook != index && std::this_thread::get_id() != caller) unhooked.fetch_add(1);
          },
          kLarge);
    }
  }
  EXPECT_EQ(unhooked.load(), 0);
  EXPECT_LE(hook_calls.load(), 3 * count);
}

TEST(ThreadPool, HelpersBlockSignalsAndComputeAsIeee) {
  // New helpers inherit the creator's rounding mode unless they set their own.
  pool_of(1).run_chunks(
      2, [](int64_t) {}, kLarge);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  ThreadPool& pool = pool_of(3);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    pool.run_chunks(
        6,
        [&](int64_t) {
          if (std::this_thread::get_id() == caller) return;
          sigset_t blocked;
          pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
          volatile float one = 1.0f;
          volatile float tiny = 1e-10f;
          if (sigismember(&blocked, SIGINT) != 1 || one + tiny != 1.0f) wrong.fetch_add(1);
        },
        kLarge);
  }
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(wrong.load(), 0);
}

#if defined(TREENAIL_TSAN)
TEST(ThreadPool, Fork) { GTEST_SKIP() << "ThreadSanitizer cannot start threads after fork"; }
#else

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ThreadPool, ForkedChildGetsAFreshPool) {
  ThreadPool& pool = pool_of(3);
  expect_exactly_once(pool, 16, kLarge);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<int> runs{0};
      for (int i = 0; i < 50; ++i) {
        pool.run_chunks(
            16, [&](int64_t) { runs.fetch_add(1); }, kLarge);
      }
      ::_exit(runs.load() == 800 && pool.started_helpers() == 2 && pool.num_threads() == 3 ? 0 : 1);
    }
    ASSERT_EQ(exit_code_of(child), 0);
    expect_exactly_once(pool, 16, kLarge);
  }
}

TEST(ThreadPool, ForkBesideABusyPool) {
  ThreadPool& pool = pool_of(3);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load())
      pool.run_chunks(
          16, [](int64_t) {}, kLarge);
  });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<int> runs{0};
      pool.run_chunks(
          16, [&](int64_t) { runs.fetch_add(1); }, kLarge);
      ::_exit(runs.load() == 16 && pool.started_helpers() == 2 ? 0 : 1);
    }
    EXPECT_EQ(exit_code_of(child), 0);
  }
  stop.store(true);
  other.join();
}

TEST(ThreadPool, RegionInFlightAtForkFailsInTheChildOnly) {
  ThreadPool& pool = pool_of(3);
  const pid_t parent = ::getpid();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<pid_t> child{-1};
  std::atomic<int> runs{0};
  try {
    pool.run_chunks(
        64,
        [&](int64_t) {
          runs.fetch_add(1);
          if (std::this_thread::get_id() != caller) {
            while (child.load() == -1) std::this_thread::yield();  // leave a chunk to the caller
          } else if (child.load() == -1) {
            child.store(::fork());
          }
        },
        kLarge);
    if (::getpid() != parent) ::_exit(2);
  } catch (const Error& error) {
    if (::getpid() == parent) throw;
    // The fresh pool works even though its region failed.
    std::atomic<int> again{0};
    pool.run_chunks(
        16, [&](int64_t) { again.fetch_add(1); }, kLarge);
    ::_exit(error.code() == Code::kFailedPrecondition && again.load() == 16 ? 0 : 1);
  }
  EXPECT_EQ(runs.load(), 64);
  ASSERT_GT(child, 0);
  EXPECT_EQ(exit_code_of(child), 0);
}

#endif

}  // namespace
}  // namespace treenail
