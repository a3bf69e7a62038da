// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/deadline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "framework/base/detached_thread.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

using Clock = DeadlineScope::Clock;

struct Entry {
  Clock::time_point due;
  CancellationToken* token;
  int64_t timeout_ms;
};

class Watch {
 public:
  // Never destroyed: its thread may outlive static destruction. A forked child has no such thread
  // and gets a fresh watch.
  static Watch& instance() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { slot() = new Watch; });
    static_cast<void>(registered);
    return *slot();
  }

  uint64_t add(CancellationToken& token, int64_t timeout_ms, Clock::time_point begun) {
    const std::lock_guard lock(mutex_);
    if (!started_) start();
    const uint64_t id = next_id_++;
    constexpr int64_t kTenYearsMs = int64_t{10} * 365 * 24 * 3600 * 1000;  // keeps the sum in range
    const auto wait = std::chrono::milliseconds(std::min(timeout_ms, kTenYearsMs));
    entries_.emplace(id, Entry{begun + wait, &token, timeout_ms});
    changed_.notify_one();
    return id;
  }

  void remove(uint64_t id) {
    const std::lock_guard lock(
        mutex_);  // cancellation happens under this lock: afterwards the token is left alone
    entries_.erase(id);
  }

 private:
  static Watch*& slot() {
    static Watch* watch = new Watch;
    return watch;
  }

  void start() {
    const auto entry = [](void* watch) -> void* {
      static_cast<Watch*>(watch)->work();
      return nullptr;
    };
    const int result = start_detached_thread(entry, this);
    if (result != 0) {
      throw resource_exhausted("the thread that watches timeouts could not be started (",
                               std::strerror(result),
                               "): the process is short of memory or of threads (ulimit -v, -u)");
    }
    started_ = true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto first = std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
      if (first == entries_.end()) {
        changed_.wait(lock);
      } else if (Clock::now() < first->second.due) {
        const Clock::time_point due = first->second.due;
        changed_.wait_until(lock, due);
      } else {
        const Entry entry = first->second;
        entries_.erase(first);
        entry.token->cancel(
            Code::kDeadlineExceeded,
            concat("the run did not end within its timeout of ", entry.timeout_ms, " ms"));
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Entry> entries_;
  uint64_t next_id_ = 1;
  bool started_ = false;
};

}  // namespace

DeadlineScope::DeadlineScope(CancellationToken& token, int64_t timeout_ms, Clock::time_point begun)
    : id_(Watch::instance().add(token, timeout_ms, begun)) {}

DeadlineScope::~DeadlineScope() { Watch::instance().remove(id_); }

}  // namespace treenail
