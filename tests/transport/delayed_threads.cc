// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/delayed_threads.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace treenail::test {
namespace {

using Time = std::chrono::steady_clock::time_point;

// How many threads there are or are to come.
struct Count {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  int value = 0;

  void add(int more) {
    const std::lock_guard lock(mutex);
    value += more;
    if (value == 0) changed.notify_all();
  }
};

Count& threads() {
  static auto* const kThreads = new Count;
  return *kThreads;
}

// Of a thread that is counted.
void begin(std::function<void()> work) {
  std::thread([work = std::move(work)]() mutable {
    work();
    work = nullptr;
    threads().add(-1);
  }).detach();
}

// Begins work when it is due; lives as long as the process.
class Schedule {
 public:
  static Schedule& instance() {
    static auto* const kSchedule = new Schedule;
    return *kSchedule;
  }
  void add(Time due, bool counted, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(due, Entry{counted, std::move(work)});
    changed_.notify_one();
  }

 private:
  struct Entry {
    bool counted;
    std::function<void()> work;
  };

  Schedule() {
    std::thread([this] { serve(); }).detach();
  }
  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (waiting_.empty()) {
        changed_.wait(lock);
      } else if (const Time due = waiting_.begin()->first; due > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, due);
      } else {
        auto entry = waiting_.extract(waiting_.begin());
        lock.unlock();
        if (!entry.mapped().counted) threads().add(1);
        begin(std::move(entry.mapped().work));
        lock.lock();
      }
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::multimap<Time, Entry> waiting_;
};

}  // namespace

void run_after(std::chrono::microseconds delay, std::function<void()> work) {
  threads().add(1);
  if (delay.count() <= 0) return begin(std::move(work));
  Schedule::instance().add(std::chrono::steady_clock::now() + delay, true, std::move(work));
}

void run_if_still_there(std::chrono::microseconds delay, std::function<void()> work) {
  Schedule::instance().add(std::chrono::steady_clock::now() + delay, false, std::move(work));
}

bool threads_end(std::chrono::milliseconds limit) {
  std::unique_lock lock(threads().mutex);
  return threads().changed.wait_for(lock, limit, [] { return threads().value == 0; });
}

}  // namespace treenail::test
