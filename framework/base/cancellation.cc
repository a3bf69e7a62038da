// SPDX-License-Identifier: Apache-2.0
// The token's slow side: reason, callbacks, and the promise that a removed callback neither runs
// nor will run.
#include "framework/base/cancellation.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace treenail {

struct CancellationToken::Impl {
  struct Entry {
    uint64_t id;
    Callback callback;
    void* argument;
  };

  std::mutex mutex;
  std::condition_variable ended;  // a callback returned
  std::vector<Entry> entries;
  uint64_t next_id = 1;
  uint64_t running = 0;  // id of the callback being run, 0 for none
  std::thread::id cancelling_thread;
  Code reason = Code::kCancelled;
  std::string text;
  bool begun = false;
};

CancellationToken::CancellationToken() : impl_(new Impl) {}

CancellationToken::~CancellationToken() { delete impl_; }

void CancellationToken::cancel(Code reason, std::string text) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->begun) return;
  impl_->begun = true;
  impl_->reason = reason;
  impl_->text = std::move(text);
  impl_->cancelling_thread = std::this_thread::get_id();
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
    impl_->ended.notify_all();
  }
}

uint64_t CancellationToken::add_callback(Callback callback, void* argument) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->begun) return 0;
  const uint64_t id = impl_->next_id++;
  impl_->entries.push_back({id, callback, argument});
  return id;
}

void CancellationToken::remove_callback(uint64_t id) {
  if (id == 0) return;
  std::unique_lock lock(impl_->mutex);
  const auto at = std::find_if(impl_->entries.begin(), impl_->entries.end(),
                               [id](const Impl::Entry& entry) { return entry.id == id; });
  if (at != impl_->entries.end()) {
    impl_->entries.erase(at);
    return;
  }
  // A callback that removes itself would wait for its own end.
  if (impl_->running == id && impl_->cancelling_thread == std::this_thread::get_id()) return;
  impl_->ended.wait(lock, [this, id] { return impl_->running != id; });
}

void CancellationToken::throw_reason() const {
  std::unique_lock lock(impl_->mutex);
  throw Error(impl_->reason, impl_->text);
}

}  // namespace treenail
