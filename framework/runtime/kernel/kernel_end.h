// SPDX-License-Identifier: Apache-2.0
// The end of a started kernel that does not wait for what it has asked for once its run is
// cancelled. What of end and cancellation comes first is told, once. Kernel-side header.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "framework/base/intrusive_ptr.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class CancellableEnd {
 public:
  CancellableEnd(const RunContext& context, const Done& done) : context_(context), done_(done) {}
  CancellableEnd(const CancellableEnd&) = delete;
  CancellableEnd& operator=(const CancellableEnd&) = delete;

  // From now on a cancellation ends the kernel. `owner`, which this is a part of, stays until one
  // of the calls below, after which it may be gone. Errors: Cancelled, where the run is so already.
  void watch(const RefCounted& owner);
  // As AsyncKernel::start() has to end; nothing, where a cancellation was before.
  void end(std::vector<Tensor> outputs);
  void fail(std::exception_ptr error);
  // Nobody is told any end; false where a cancellation was before.
  bool forget();

 private:
  bool claim() { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  static void cancelled(void* end) noexcept;

  RunContext context_;
  const Done done_;
  const RefCounted* owner_ = nullptr;
  std::atomic<bool> claimed_{false};
  uint64_t cancellation_ = 0;
};

}  // namespace treenail
