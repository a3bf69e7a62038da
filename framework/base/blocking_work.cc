// SPDX-License-Identifier: Apache-2.0
#include "framework/base/blocking_work.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "framework/base/detached_thread.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr std::chrono::seconds kIdle{5};

class Threads {
 public:
  // Never destroyed: its threads may outlive static destruction. A forked child has none of them
  // and begins anew.
  static Threads& instance() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { slot() = new Threads; });
    static_cast<void>(registered);
    return *slot();
  }

  void add(std::unique_ptr<BlockingWork> work) {
    const std::lock_guard lock(mutex_);
    if (idle_ <= work_.size()) start();
    work_.push_back(std::move(work));
    added_.notify_one();
  }

 private:
  static Threads*& slot() {
    static auto* threads = new Threads;
    return threads;
  }

  // The new thread counts as idle from here on, so that the next piece of work gets another.
  void start() {
    const auto entry = [](void* threads) -> void* {
      static_cast<Threads*>(threads)->serve();
      return nullptr;
    };
    const int result = start_detached_thread(entry, this);
    if (result != 0) {
      throw resource_exhausted("a thread for work that blocks could not be started (",
                               std::strerror(result),
                               "): the process is short of memory or of threads (ulimit -v, -u)");
    }
    ++idle_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // By the system's clock, for sanitizers know no other wait.
      const auto until = std::chrono::system_clock::now() + kIdle;
      if (!added_.wait_until(lock, until, [&] { return !work_.empty(); })) break;
      std::unique_ptr<BlockingWork> work = std::move(work_.front());
      work_.pop_front();
      --idle_;
      lock.unlock();
      work->run();
      work.reset();
      lock.lock();
      ++idle_;
    }
    --idle_;
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::unique_ptr<BlockingWork>> work_;
  size_t idle_ = 0;  // threads that wait for work or are about to
};

}  // namespace

BlockingWork::~BlockingWork() = default;

void run_blocking(std::unique_ptr<BlockingWork> work) { Threads::instance().add(std::move(work)); }

}  // namespace treenail
