// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/internal.cc: copies between memories, and waiting for a queue. Both end
// when the device says so.
#include <exception>
#include <memory>
#include <utility>

#include "framework/device/device.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/transfer.h"

namespace treenail::host {
namespace {

// Ends a kernel when the device has done what is queued there; frees itself.
class EndWhenReached final : public Device::Waiter, public FromAllocator {
 public:
  static void ask(Device& device, const Done& done) { device.notify(*new EndWhenReached(done)); }

  void reached(std::exception_ptr error) noexcept override {
    const Done done = done_;
    delete this;
    if (error == nullptr) {
      done();
    } else {
      done.fail(std::move(error));
    }
  }

 private:
  explicit EndWhenReached(const Done& done) : done_(done) {}
  const Done done_;
};

class WaitKernel final : public AsyncKernel {
 public:
  explicit WaitKernel(Device& device) : device_(device) {}
  void start(RunContext, Done done) const override { EndWhenReached::ask(device_, done); }

 private:
  Device& device_;
};

class CopyKernel final : public AsyncKernel {
 public:
  explicit CopyKernel(Device& to) : to_(to) {}

  void start(RunContext c, Done done) const override {
    const Tensor& from = c.input(0);
    Tensor to(from.dtype(), from.shape(), &to_);
    Device& busy = begin_copy(from, to);
    c.set_output(0, std::move(to));
    EndWhenReached::ask(busy, done);
  }

 private:
  Device& to_;
};

template <class K>
std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
  auto kernel = std::make_unique<K>(p.device());
  kernel->cost_ns = 500;
  return kernel;
}

}  // namespace

void register_transfers_kernels(KernelRegistry& r) {
  r.add("_Copy", {}, prepare<CopyKernel>);
  r.add("_Wait", {}, prepare<WaitKernel>);
}

}  // namespace treenail::host
