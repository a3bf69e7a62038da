// SPDX-License-Identifier: Apache-2.0
// One token per run, children per call frame: set once, polled per chunk by kernels; asynchronous
// waits register a callback.
#pragma once

#include <atomic>
#include <cstdint>

#include "framework/base/error.h"

namespace treenail {

class CancellationToken {
 public:
  CancellationToken();
  ~CancellationToken();
  CancellationToken(const CancellationToken&) = delete;
  CancellationToken& operator=(const CancellationToken&) = delete;

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // First call wins; callbacks run once, on the cancelling thread. `reason` is kCancelled or
  // kDeadlineExceeded.
  void cancel(Code reason, std::string text);
  // Throws the Error given to cancel(), if it was called.
  void check() const {
    if (cancelled()) throw_reason();
  }
  using Callback = void (*)(void* argument);
  // Returns an id for remove_callback, or 0 when already cancelled (then the callback is not kept
  // nor called).
  uint64_t add_callback(Callback callback, void* argument) const;
  // After return the callback does not run and will not run.
  void remove_callback(uint64_t id) const;

 private:
  [[noreturn]] void throw_reason() const;
  std::atomic<bool> cancelled_{false};
  struct Impl;
  Impl* impl_;
};

// For the scope's life a cancellation of `from`, which may be null, cancels `to`. Errors: what has
// cancelled `from` already.
class TokenLink {
 public:
  TokenLink(const CancellationToken* from, CancellationToken& to) : from_(from) {
    if (from_ == nullptr) return;
    from_->check();
    id_ = from_->add_callback(
        [](void* token) {
          static_cast<CancellationToken*>(token)->cancel(Code::kCancelled, "the run was cancelled");
        },
        &to);
    if (id_ == 0) from_->check();
  }
  ~TokenLink() {
    if (id_ != 0) from_->remove_callback(id_);
  }
  TokenLink(const TokenLink&) = delete;
  TokenLink& operator=(const TokenLink&) = delete;

 private:
  const CancellationToken* from_;
  uint64_t id_ = 0;
};

}  // namespace treenail
