// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/queued_kernel.h"

#include <mutex>

#include "framework/device/device.h"

namespace treenail {
namespace {

class FirstFailure final : public Failure::Target {
 public:
  void failed(int32_t, std::exception_ptr error) noexcept override {
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  bool superseded(int32_t) const noexcept override { return false; }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void QueuedKernel::run(RunContext& c) const {
  FirstFailure failure;
  enqueue(c, Failure(failure, 0));
  device_.wait();
  failure.rethrow();
}

}  // namespace treenail
