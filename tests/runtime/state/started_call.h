// SPDX-License-Identifier: Apache-2.0
// A call of an operation that may wait, as a run makes it: where its outputs go, its token, and how
// it ended.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/tensor/tensor.h"
#include "tests/support/expect_error.h"

namespace treenail::testing {

class StartedCall final : public Done::Target {
 public:
  explicit StartedCall(int outputs = 1) : values_(static_cast<size_t>(outputs)) {
    context_.values_ = values_.data();
    context_.token_ = &token_;
  }
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;

  RunContext& context() { return context_; }
  Done done() { return Done(*this, 0); }
  void cancel() { token_.cancel(Code::kCancelled, "the test cancels"); }

  void ended(int32_t, std::exception_ptr error) noexcept override {
    error_ = std::move(error);
    times_.fetch_add(1, std::memory_order_release);
  }

  // How often it has ended: 0 while it waits, and never more than 1.
  int times() const { return times_.load(std::memory_order_acquire); }
  void wait() const {
    while (times() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  const Tensor& output(int i = 0) const { return values_[static_cast<size_t>(i)]; }
  std::string error() const {
    if (error_ == nullptr) return "";
    return error_of([this] { std::rethrow_exception(error_); });
  }

 private:
  std::vector<Tensor> values_;
  CancellationToken token_;
  RunContext context_;
  std::exception_ptr error_;
  std::atomic<int> times_{0};
};

}  // namespace treenail::testing
