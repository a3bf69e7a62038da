// SPDX-License-Identifier: Apache-2.0
// The token's slow side: reason, callbacks, and the promise that a removed callback neither runs
// nor will run. A child forked while another thread had the token in hand uses it on: what that
// thread was changing is begun anew, and a callback that it was running never ends there.
#include "framework/base/cancellation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/fork.h"

namespace treenail {

struct CancellationToken::Impl {
  struct Entry {
    uint64_t id;
    Callback callback;
    void* argument;
  };

  // In a child the callbacks that are lost belong to runs whose threads it does not have.
  std::unique_lock<ForkMutex> hold() {
    std::unique_lock<ForkMutex> lock(mutex);
    if (mutex.abandoned()) {
      begin_anew(entries);
      begin_anew(text);
      text = "the run was cancelled";
    }
    return lock;
  }

  ForkMutex mutex;
  std::vector<Entry> entries;
  uint64_t next_id = 1;
  // Id of the callback being run, 0 for none. Waited for without the lock: of a condition variable
  // a child could not say who waits.
  std::atomic<uint64_t> running = 0;
  std::thread::id cancelling_thread;
  uint32_t cancelling_process = 0;  // its fork_generation()
  Code reason = Code::kCancelled;
  std::string text;
};

CancellationToken::CancellationToken() : impl_(new Impl) {}

CancellationToken::~CancellationToken() { delete impl_; }

void CancellationToken::cancel(Code reason, std::string text) {
  std::unique_lock lock = impl_->hold();
  if (cancelled()) return;
  impl_->reason = reason;
  impl_->text = std::move(text);
  impl_->cancelling_thread = std::this_thread::get_id();
  impl_->cancelling_process = fork_generation();
  cancelled_.store(true, std::memory_order_release);
  // A callback may remove others, so the list is taken one entry at a time, in order of addition.
  while (!impl_->entries.empty()) {
    const Impl::Entry entry = impl_->entries.front();
    impl_->entries.erase(impl_->entries.begin());
    impl_->running = entry.id;
    lock.unlock();
    entry.callback(entry.argument);
    lock.lock();
    impl_->running = 0;
    impl_->running.notify_all();
  }
}

uint64_t CancellationToken::add_callback(Callback callback, void* argument) const {
  const std::unique_lock lock = impl_->hold();
  if (cancelled()) return 0;
  const uint64_t id = impl_->next_id++;
  impl_->entries.push_back({id, callback, argument});
  return id;
}

void CancellationToken::remove_callback(uint64_t id) const {
  if (id == 0) return;
  std::unique_lock lock = impl_->hold();
  const auto at = std::find_if(impl_->entries.begin(), impl_->entries.end(),
                               [id](const Impl::Entry& entry) { return entry.id == id; });
  if (at != impl_->entries.end()) {
    impl_->entries.erase(at);
    return;
  }
  if (impl_->running != id || impl_->cancelling_process != fork_generation()) return;
  // A callback that removes itself would wait for its own end.
  if (impl_->cancelling_thread == std::this_thread::get_id()) return;
  lock.unlock();
  impl_->running.wait(id);
}

void CancellationToken::throw_reason() const {
  const std::unique_lock lock = impl_->hold();
  throw Error(impl_->reason, impl_->text);
}

}  // namespace treenail
