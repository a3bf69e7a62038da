// SPDX-License-Identifier: Apache-2.0
// Kernels of ops whose outputs have the sizes that values say. A first pass counts, on the queue.
// When that is past it the outputs are allocated, by the thread that follows the queue, and a
// second pass is queued, which fills them: no thread sleeps in between, and other nodes run. With
// the second pass on the queue the node has ended, for whatever reads its outputs is queued later.
#pragma once

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "framework/runtime/kernel/async_kernel.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// Where the first pass says that it was given what it may not take, before the second one begins:
// the first that is said counts.
class Refusal {
 public:
  void operator()(std::exception_ptr error) const {
    if (*error_ == nullptr) *error_ = std::move(error);
  }
  void rethrow() const {
    if (*error_ != nullptr) std::rethrow_exception(*error_);
  }

 private:
  std::shared_ptr<std::exception_ptr> error_ = std::make_shared<std::exception_ptr>();
};

// first(RunContext&, CudaDevice&, const Refusal&) queues the first pass and what brings its numbers
// to the host, and gives second(RunContext&, CudaDevice&), which finds them there, sets all outputs
// and queues what fills them.
template <class First>
class CountedKernel final : public AsyncKernel {
 public:
  CountedKernel(CudaDevice& device, First first) : device_(device), first_(std::move(first)) {
    cost_ns = kLaunchNs;
  }

  void start(RunContext c, Done done) const override {
    const Refusal refusal;
    auto second = first_(c, device_, refusal);
    device_.when_done([&device = device_, c, done, refusal,
                       second = std::move(second)](const std::exception_ptr& lost) mutable {
      if (lost != nullptr) return done.fail(lost);
      try {
        const auto now = std::move(second);  // its memory is given back before others go on
        c.token()->check();
        refusal.rethrow();
        now(c, device);
      } catch (...) {
        return done.fail(std::current_exception());
      }
      done();
    });
  }

 private:
  static constexpr double kLaunchNs = 10000;
  CudaDevice& device_;
  const First first_;
};

template <class First>
std::unique_ptr<Kernel> make_counted_kernel(const PrepareContext& p, First&& first) {
  return std::make_unique<CountedKernel<std::decay_t<First>>>(static_cast<CudaDevice&>(p.device()),
                                                              std::forward<First>(first));
}

}  // namespace treenail::cuda
