// SPDX-License-Identifier: Apache-2.0
// Regions that grow: each unit once, from whatever thread it came, owners that sleep and wake, ends
// while helpers work, forks. Run under ThreadSanitizer as well.
#include "framework/base/work_region.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/base/pool_support.h"

namespace treenail {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Counts units down, and closes the region behind the last one.
struct Countdown {
  explicit Countdown(int64_t units, int max_helpers = 64)
      : left(units), region(body, max_helpers) {}
  std::atomic<int64_t> left;
  std::atomic<int64_t> runs{0};
  std::function<void()> work = [] {};
  std::function<void()> body = [this] {
    work();
    runs.fetch_add(1);
    if (left.fetch_sub(1) == 1) region.close();
  };
  WorkRegion region;
};

TEST(WorkRegion, EndsWithoutUnits) {
  for (const int threads : {1, 2, 4}) {
    pool_of(threads);
    WorkRegion region([] { FAIL(); }, threads - 1);
    region.close();
    EXPECT_TRUE(region.run());
  }
}

TEST(WorkRegion, RunsEachUnitOnce) {
  for (const int threads : {1, 2, 4, 8}) {
    pool_of(threads);
    for (const int64_t units : {1, 2, 7, 100'000}) {
      Countdown count(units);
      count.region.add(static_cast<uint32_t>(units));
      EXPECT_TRUE(count.region.run());
      EXPECT_EQ(count.runs.load(), units);
    }
  }
}

TEST(WorkRegion, UnitsAddUnits) {
  for (const int threads : {1, 2, 4}) {
    pool_of(threads);
    for (int round = 0; round < 10 * kScale; ++round) {
      Countdown count(1023);
      std::atomic<int> inner{511};  // units that add two more: a binary tree
      count.work = [&] {
        if (inner.fetch_sub(1) > 0) count.region.add(2, 1);
      };
      count.region.add();
      EXPECT_TRUE(count.region.run());
      EXPECT_EQ(count.runs.load(), 1023);
    }
  }
}

// Each adder's last unit is what keeps the region from ending before its call: its calls may well
// outlast the region.
TEST(WorkRegion, UnitsComeFromOutsideThreads) {
  pool_of(3);
  for (int round = 0; round < 20 * kScale; ++round) {
    std::vector<std::thread> adders;
    {
      Countdown count(4 * 100);
      for (int t = 0; t < 4; ++t) {
        adders.emplace_back([&region = count.region] {
          for (int i = 0; i < 100; ++i) region.add();
        });
      }
      EXPECT_TRUE(count.region.run());
      EXPECT_EQ(count.runs.load(), 400);
    }
    for (std::thread& adder : adders) adder.join();
  }
}

TEST(WorkRegion, OwnerSleepsAndIsWoken) {
  for (const int helpers : {0, 1}) {
    pool_of(2);
    Countdown count(3, helpers);
    std::thread outside([&region = count.region] {
      for (int i = 0; i < 3; ++i) {
        std::this_thread::sleep_for(milliseconds(5));
        region.add();
      }
    });
    const auto begun = steady_clock::now();
    EXPECT_TRUE(count.region.run(/*wake_ms=*/60'000, [] {}));
    EXPECT_LT(steady_clock::now() - begun, milliseconds(30'000));
    EXPECT_EQ(count.runs.load(), 3);
    outside.join();
  }
}

TEST(WorkRegion, ClosingWakesTheOwner) {
  pool_of(2);
  std::optional<WorkRegion> region;
  const auto body = [] {};
  region.emplace(body, 1);
  std::thread outside([&region = *region] {
    std::this_thread::sleep_for(milliseconds(5));
    region.close();
  });
  EXPECT_TRUE(region->run(/*wake_ms=*/60'000, [] {}));
  outside.join();
}

TEST(WorkRegion, PollIsCalledWhileTheOwnerWaits) {
  pool_of(2);
  Countdown count(1);
  int polls = 0;
  const std::thread::id owner = std::this_thread::get_id();
  EXPECT_TRUE(count.region.run(/*wake_ms=*/1, [&] {
    EXPECT_EQ(std::this_thread::get_id(), owner);
    if (++polls == 5) count.region.add();
  }));
  EXPECT_GE(polls, 5);
}

TEST(WorkRegion, AtMostSoManyHelpersJoin) {
  pool_of(8);
  const std::thread::id owner = std::this_thread::get_id();
  for (const int most : {0, 1, 3}) {
    Countdown count(200, most);
    std::atomic<int> inside{0};
    std::atomic<int> highest{0};
    count.work = [&] {
      if (std::this_thread::get_id() == owner) return;
      const int now = inside.fetch_add(1) + 1;
      if (now > highest.load()) highest.store(now);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      inside.fetch_sub(1);
    };
    count.region.add(200);
    EXPECT_TRUE(count.region.run());
    EXPECT_LE(highest.load(), most);
  }
}

// Helpers take units while the owner sits in one.
TEST(WorkRegion, HelpersTakePart) {
  pool_of(2);
  const std::thread::id owner = std::this_thread::get_id();
  Countdown count(2);
  std::atomic<int> begun{0};
  std::atomic<int> helped{0};
  count.work = [&] {
    begun.fetch_add(1);
    if (std::this_thread::get_id() != owner) helped.fetch_add(1);
    const auto until = steady_clock::now() + milliseconds(5'000);
    while (begun.load() < 2 && steady_clock::now() < until) std::this_thread::yield();
  };
  count.region.add(2);
  EXPECT_TRUE(count.region.run());
  EXPECT_EQ(helped.load(), 1);
}

TEST(WorkRegion, UnitsMayOpenRegionsOfChunks) {
  for (const int threads : {2, 4}) {
    ThreadPool& pool = pool_of(threads);
    Countdown count(200);
    std::atomic<int64_t> sum{0};
    count.work = [&] {
      pool.run_chunks(
          8,
          [&](int64_t i) {
            pool.run_chunks(
                3, [&](int64_t k) { sum.fetch_add(i * k); }, 1e9);
          },
          1e9);
    };
    count.region.add(200);
    EXPECT_TRUE(count.region.run());
    EXPECT_EQ(sum.load(), int64_t{200} * 28 * 3);
  }
}

TEST(WorkRegion, MayEndEarlyWhileHelpersAreInUnits) {
  pool_of(4);
  for (int round = 0; round < 20 * kScale; ++round) {
    std::atomic<int> inside{0};
    std::atomic<int> begun{0};
    const auto body = [&] {
      begun.fetch_add(1);
      inside.fetch_add(1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      inside.fetch_sub(1);
    };
    {
      WorkRegion region(body, 3);
      region.add(1000);
      if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (round % 3 == 0) region.close();
    }
    EXPECT_EQ(inside.load(), 0);
    const int at_end = begun.load();
    EXPECT_LT(at_end, 1000);
    std::this_thread::yield();
    EXPECT_EQ(begun.load(), at_end);
  }
}

// More regions at once than there are slots: some owners work alone.
TEST(WorkRegion, ManyAtOnce) {
  pool_of(4);
  std::vector<std::thread> owners;
  std::atomic<int64_t> runs{0};
  for (int t = 0; t < 24; ++t) {
    owners.emplace_back([&runs] {
      for (int round = 0; round < 2 * kScale; ++round) {
        Countdown count(200);
        count.region.add(200);
        EXPECT_TRUE(count.region.run());
        runs.fetch_add(count.runs.load());
      }
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(runs.load(), int64_t{24} * 2 * kScale * 200);
}

// Regions of both kinds, in each other and beside each other.
TEST(WorkRegion, RandomRegionsFromEightThreads) {
  ThreadPool& pool = pool_of(4);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&pool, &wrong, state = t * 7919 + 1]() mutable {
      const auto random = [&state](uint32_t below) {
        state = state * 1664525 + 1013904223;
        return (state >> 8) % below;
      };
      for (int round = 0; round < 60 * kScale; ++round) {
        const int64_t chunks = 2 + random(20);
        const double cost = random(2) == 0 ? 1e9 : 5'000;
        std::atomic<int64_t> sum{0};
        const auto loop = [&] {
          pool.run_chunks(
              chunks, [&](int64_t i) { sum.fetch_add(i); }, cost);
        };
        int64_t loops = 1;
        if (random(2) == 0) {
          loop();
        } else {
          loops = 1 + random(30);
          Countdown count(loops, static_cast<int>(random(4)));
          count.work = loop;
          count.region.add(static_cast<uint32_t>(loops));
          if (!count.region.run()) wrong.fetch_add(1);
        }
        if (sum.load() != loops * chunks * (chunks - 1) / 2) wrong.fetch_add(1);
        if (random(20) == 0) pool.set_num_threads(1 + static_cast<int>(random(5)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

#if !defined(TREENAIL_TSAN)
TEST(WorkRegion, TheChildOfAForkCannotFinishIt) {
  pool_of(3);
  const pid_t parent = ::getpid();
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<pid_t> child{-1};
  int code = -1;
  {
    Countdown count(64);
    count.work = [&] {
      if (std::this_thread::get_id() != owner) {
        while (child.load() == -1) std::this_thread::yield();  // leave a unit to the owner
      } else if (child.load() == -1) {
        child.store(::fork());
      }
    };
    count.region.add(64);
    const bool finished = count.region.run();
    if (::getpid() != parent) {
      std::atomic<int> again{0};
      ThreadPool::instance().run_chunks(
          16, [&](int64_t) { again.fetch_add(1); }, 1e9);
      code = !finished && again.load() == 16 ? 0 : 1;
    } else {
      EXPECT_TRUE(finished);
      EXPECT_EQ(count.runs.load(), 64);
    }
  }
  if (::getpid() != parent) ::_exit(code);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace treenail
