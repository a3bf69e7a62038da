// SPDX-License-Identifier: Apache-2.0
// Locks that another thread holds when the process forks: the child frees them, and is told.
#include "framework/base/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "framework/base/error.h"
#include "tests/support/child.h"
#include "tests/support/sanitizers.h"

#if defined(TREENAIL_TSAN)
// A child takes its parent's threads for its own that nobody joined, and fails as it ends.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }
#endif

namespace treenail {
namespace {

using test::in_child;

// Another thread holds `lock` while one lives.
template <class Lock>
class Holder {
 public:
  template <class Mutex>
  explicit Holder(Mutex& mutex)
      : thread_([this, &mutex] {
          const Lock lock(mutex);
          held_.store(true);
          while (!end_.load()) std::this_thread::yield();
        }) {
    while (!held_.load()) std::this_thread::yield();
  }
  ~Holder() {
    end_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

TEST(Fork, AMutexOfAThreadThatIsGoneIsFreeAndSaysSo) {
  ForkMutex mutex;
  {
    const Holder<std::lock_guard<ForkMutex>> holder(mutex);
    EXPECT_EQ(in_child([&] {
                const std::lock_guard lock(mutex);
                return mutex.abandoned() && !mutex.abandoned() ? 0 : 1;
              }),
              0);
    EXPECT_FALSE(mutex.try_lock());  // here the holder lives
  }
  const std::lock_guard lock(mutex);
  EXPECT_FALSE(mutex.abandoned());
}

TEST(Fork, AMutexThatNobodyHeldIsNotAbandoned) {
  ForkMutex mutex;
  EXPECT_EQ(in_child([&] {
              const std::lock_guard lock(mutex);
              return mutex.abandoned() ? 1 : 0;
            }),
            0);
}

TEST(Fork, AMutexOfTheForkingThreadIsUnlockedInBoth) {
  ForkMutex mutex;
  mutex.lock();
  EXPECT_EQ(in_child([&] {
              mutex.unlock();
              const std::lock_guard lock(mutex);
              return mutex.abandoned() ? 1 : 0;
            }),
            0);
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

#if !defined(TREENAIL_TSAN)  // which cannot start threads after fork
TEST(Fork, ThreadsOfTheChildShareTheFreedMutex) {
  ForkMutex mutex;
  const Holder<std::lock_guard<ForkMutex>> holder(mutex);
  EXPECT_EQ(in_child([&] {
              int counter = 0;
              const auto count = [&] {
                for (int i = 0; i < 10000; ++i) {
                  const std::lock_guard lock(mutex);
                  ++counter;
                }
              };
              std::thread a(count), b(count), c(count);
              a.join();
              b.join();
              c.join();
              return counter == 30000 ? 0 : 1;
            }),
            0);
}

#endif

TEST(Fork, AReaderThatIsGoneKeepsNobodyOut) {
  ForkSharedMutex mutex;
  const Holder<std::shared_lock<ForkSharedMutex>> holder(mutex);
  EXPECT_EQ(in_child([&] {
              const std::unique_lock lock(mutex);
              return 0;
            }),
            0);
}

TEST(Fork, WhatAWriterThatIsGoneWasChangingIsAnError) {
  ForkSharedMutex mutex;
  const Holder<std::unique_lock<ForkSharedMutex>> holder(mutex);
  EXPECT_EQ(in_child([&] {
              int errors = 0;
              for (int i = 0; i < 2; ++i) {
                try {
                  const std::shared_lock lock(mutex);
                } catch (const Error& error) {
                  errors += error.code() == Code::kFailedPrecondition ? 1 : 0;
                }
              }
              return errors == 2 ? 0 : 1;
            }),
            0);
}

TEST(Fork, WaitsForABlock) {
  std::atomic<int> steps{0};
  std::atomic<bool> blocked{false};
  std::thread worker([&] {
    const ForkBlock outer;
    const ForkBlock inner;
    blocked.store(true);
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
      steps.fetch_add(1);
    }
  });
  while (!blocked.load()) std::this_thread::yield();
  EXPECT_EQ(in_child([&] { return steps.load() == 100 ? 0 : 1; }), 0);
  worker.join();
}

TEST(Fork, InsideABlockOfItsOwnAThreadMayFork) {
  const ForkBlock block;
  EXPECT_EQ(in_child([] {
              const ForkBlock again;
              return 0;
            }),
            0);
}

TEST(Fork, WhatIsMadeOnceIsTriedAgainAfterAFailure) {
  static std::atomic<const int*> slot{nullptr};
  int calls = 0;
  const auto make = [&calls]() -> const int* {
    if (++calls == 1) throw std::runtime_error("not yet");
    return new int(calls);
  };
  EXPECT_THROW(made_once(slot, make), std::runtime_error);
  EXPECT_EQ(made_once(slot, make), 2);
  EXPECT_EQ(made_once(slot, make), 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace treenail
