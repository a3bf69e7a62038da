// SPDX-License-Identifier: Apache-2.0
// Several regions in one pool: callers at once, regions inside chunks, helpers in turn, errors,
// cancellation and forks of one beside the others. Run under ThreadSanitizer as well.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "tests/base/pool_support.h"
#include "tests/support/sanitizers.h"

namespace treenail {
namespace {

template <class Condition>
bool within(int most_ms, Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(most_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// Who wakes helpers estimates how many are needed, so sharing takes some attempts.
TEST(ThreadPoolRegions, ChunksMayOpenRegionsThatHelpersShare) {
  ThreadPool& pool = pool_of(4);
  std::atomic<bool> shared{false};
  for (int attempt = 0; attempt < 100 && !shared.load(); ++attempt) {
    std::atomic<bool> over{false};
    pool.run_chunks(
        2,
        [&](int64_t outer) {
          if (outer == 1) {  // keeps one thread from the inner region
            within(30'000, [&] { return over.load(); });
            return;
          }
          std::atomic<int> begun{0};
          pool.run_chunks(
              2,
              [&](int64_t) {
                begun.fetch_add(1);
                if (within(100, [&] { return begun.load() == 2; })) shared.store(true);
              },
              kLarge);
          over.store(true);
        },
        kLarge);
  }
  EXPECT_TRUE(shared.load());
}

TEST(ThreadPoolRegions, RegionsInsideInnerOnesArePlainLoops) {
  ThreadPool& pool = pool_of(4);
  std::atomic<int> innermost{0};
  std::atomic<int> strays{0};
  for (int round = 0; round < 20 * kScale; ++round) {
    pool.run_chunks(
        3,
        [&](int64_t) {
          pool.run_chunks(
              4,
              [&](int64_t) {
                const std::thread::id outer = std::this_thread::get_id();
                pool.run_chunks(
                    5,
                    [&](int64_t) {
                      innermost.fetch_add(1);
                      if (std::this_thread::get_id() != outer) strays.fetch_add(1);
                    },
                    kLarge);
              },
              kLarge);
        },
        kLarge);
  }
  EXPECT_EQ(innermost.load(), 20 * kScale * 60);
  EXPECT_EQ(strays.load(), 0);
}

TEST(ThreadPoolRegions, ErrorsOfInnerRegionsAreTheChunksOwn) {
  ThreadPool& pool = pool_of(4);
  for (int round = 0; round < 100 * kScale; ++round) {
    try {
      pool.run_chunks(
          8,
          [&](int64_t outer) {
            pool.run_chunks(
                8,
                [outer](int64_t inner) {
                  if (outer >= 2 && inner >= 3) throw invalid_argument(outer, "/", inner);
                },
                kLarge);
          },
          kLarge);
      FAIL() << "no Error";
    } catch (const Error& error) {
      ASSERT_EQ(error.message(), "2/3");
    }
  }
}

// Each caller's chunks wait for three threads at once.
TEST(ThreadPoolRegions, TwoCallersShareHelpers) {
  ThreadPool& pool = pool_of(8);
  std::atomic<int> shared{0};
  const auto call = [&] {
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::atomic<int> begun{0};
      std::atomic<int> met{0};
      pool.run_chunks(
          3,
          [&](int64_t) {
            begun.fetch_add(1);
            if (within(100, [&] { return begun.load() == 3; })) met.fetch_add(1);
          },
          kLarge);
      if (met.load() != 3) continue;
      shared.fetch_add(1);  // stays a caller until the other has met, too
      within(30'000, [&] { return shared.load() == 2; });
      return;
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(shared.load(), 2);
}

// A helper goes from region to region: it does not finish the long one first.
TEST(ThreadPoolRegions, HelpersServeRegionsInTurn) {
  ThreadPool& pool = pool_of(3);
  const std::thread::id main_thread = std::this_thread::get_id();
  std::atomic<bool> helper_came{false};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> long_chunks{0};
  std::thread other([&] {
    pool.run_chunks(
        2'000'000,
        [&](int64_t) {
          if (stop.load(std::memory_order_relaxed)) return;
          long_chunks.fetch_add(1);
          std::this_thread::sleep_for(std::chrono::microseconds(20));
        },
        kLarge);
  });
  within(30'000, [&] { return long_chunks.load() > 100; });
  pool.run_chunks(
      2,
      [&](int64_t) {
        if (std::this_thread::get_id() != main_thread) {
          helper_came.store(true);
        } else {
          within(30'000, [&] { return helper_came.load(); });
        }
      },
      kLarge);
  EXPECT_TRUE(helper_came.load());
  stop.store(true);
  other.join();
}

TEST(ThreadPoolRegions, TheErrorAndCancellationOfOneRegionLeaveOthersAlone) {
  ThreadPool& pool = pool_of(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&pool, &wrong, c] {
      for (int round = 0; round < 50 * kScale; ++round) {
        CancellationToken token;
        std::atomic<int> runs{0};
        Code code = Code::kOk;
        try {
          pool.run_chunks(
              16,
              [&](int64_t i) {
                runs.fetch_add(1);
                if (c % 3 == 0 && i == 5) throw invalid_argument("five");
                if (c % 3 == 1 && i == 5) token.cancel(Code::kCancelled, "enough");
              },
              kLarge, &token);
        } catch (const Error& error) {
          code = error.code();
        }
        const bool right = c % 3 == 0   ? code == Code::kInvalidArgument
                           : c % 3 == 1 ? code == Code::kCancelled || runs.load() == 16
                                        : code == Code::kOk && runs.load() == 16;
        if (!right) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Fewer threads wait until no helper can be in a region, more need not.
TEST(ThreadPoolRegions, HelpersStartWhileAnotherCallerIsInARegion) {
  ThreadPool& pool = pool_of(2);
  pool.run_chunks(
      2,
      [&](int64_t outer) {
        if (outer == 1) return;
        EXPECT_EQ(pool.started_helpers(), 1);
        pool.set_num_threads(3);
        std::thread([&] { expect_exactly_once(pool, 4, kLarge); }).join();
        EXPECT_EQ(pool.started_helpers(), 2);
      },
      kLarge);
}

// When callers have gone, what lies open is shared with the helpers that rested beside them.
TEST(ThreadPoolRegions, HelpersComeBackWhenOtherCallersHaveGone) {
  ThreadPool& pool = pool_of(2);
  expect_exactly_once(pool, 4, kLarge);  // starts the helper: a region without any is a loop
  const std::thread::id main_thread = std::this_thread::get_id();
  std::atomic<bool> stop{false};
  std::atomic<bool> helped{false};
  std::thread other([&] {
    while (!stop.load()) {
      pool.run_chunks(
          4, [](int64_t) {}, kLarge);
    }
  });
  int64_t chunks = 0;
  const auto begun = std::chrono::steady_clock::now();
  pool.run_chunks(
      1'000'000,
      [&](int64_t) {
        if (std::this_thread::get_id() != main_thread) helped.store(true);
        if (std::this_thread::get_id() != main_thread || ++chunks < 100) return;
        stop.store(true);
        if (helped.load() || std::chrono::steady_clock::now() - begun > std::chrono::seconds(30)) {
          return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      },
      kLarge);
  EXPECT_TRUE(helped.load());
  other.join();
}

TEST(ThreadPoolRegions, MoreCallersThanSlots) {
  ThreadPool& pool = pool_of(4);
  constexpr int kCallers = 24;
  std::atomic<int> inside{0};
  std::atomic<int64_t> runs{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 5 * kScale; ++round) {
        std::atomic<bool> first{true};
        pool.run_chunks(
            4,
            [&](int64_t) {
              runs.fetch_add(1);
              if (round > 0 || !first.exchange(false)) return;
              inside.fetch_add(1);  // all of them at once
              within(30'000, [&] { return inside.load() == kCallers; });
            },
            kLarge);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(inside.load(), kCallers);
  EXPECT_EQ(runs.load(), int64_t{kCallers} * 5 * kScale * 4);
}

TEST(ThreadPoolRegions, ThreadCountMayChangeWhileOthersRun) {
  ThreadPool& pool = pool_of(3);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      while (!stop.load()) {
        std::atomic<int> runs{0};
        pool.run_chunks(
            9, [&](int64_t) { runs.fetch_add(1); }, kLarge);
        if (runs.load() != 9) wrong.fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 100 * kScale; ++round) {
    pool.set_num_threads(1 + round * 5 % 8);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  stop.store(true);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  pool.set_num_threads(6);
  expect_exactly_once(pool, 20, kLarge);
  EXPECT_EQ(pool.started_helpers(), 5);
}

TEST(ThreadPoolRegions, ManyCallersAtOnce) {
  ThreadPool& pool = pool_of(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&pool, &sum] {
      for (int round = 0; round < 300 * kScale; ++round) {
        pool.run_chunks(
            9, [&sum](int64_t i) { sum.fetch_add(i); }, kLarge);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), int64_t{6} * 300 * kScale * 36);
}

#if !defined(TREENAIL_TSAN)

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Each of two callers forks from inside a chunk while the other's region runs.
TEST(ThreadPoolRegions, ForkWhileRegionsOfTwoThreadsRun) {
  ThreadPool& pool = pool_of(3);
  const pid_t parent = ::getpid();
  std::atomic<int> bad{0};
  const auto call = [&] {
    for (int round = 0; round < 10; ++round) {
      const std::thread::id caller = std::this_thread::get_id();
      std::atomic<pid_t> child{-1};
      Code code = Code::kOk;
      try {
        pool.run_chunks(
            64,
            [&](int64_t) {
              if (std::this_thread::get_id() != caller) {
                while (child.load() == -1) std::this_thread::yield();
              } else if (child.load() == -1) {
                child.store(::fork());
              }
            },
            kLarge);
      } catch (const Error& error) {
        code = error.code();
      }
      if (::getpid() != parent) {
        std::atomic<int> again{0};
        pool.run_chunks(
            16, [&](int64_t) { again.fetch_add(1); }, kLarge);
        ::_exit(code == Code::kFailedPrecondition && again.load() == 16 ? 0 : 1);
      }
      if (code != Code::kOk || exit_code_of(child.load()) != 0) bad.fetch_add(1);
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(bad.load(), 0);
}

#endif

}  // namespace
}  // namespace treenail
