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
  uint64_t add_callback(Callback callback, void* argument);
  // After return the callback does not run and will not run.
  void remove_callback(uint64_t id);

 private:
  [[noreturn]] void throw_reason() const;
  std::atomic<bool> cancelled_{false};
  struct Impl;
  Impl* impl_;
};

}  // namespace treenail
