// SPDX-License-Identifier: Apache-2.0
// The plugin's device code: its kernels by name, and how they are put on a device's queue.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/tensor/dtype.h"
#include "kernels/cuda/driver/device.h"
#include "kernels/cuda/language/limits.h"

namespace treenail::cuda {

// Blocks and threads of a launch.
struct Grid {
  int64_t blocks = 1;
  int blocks_y = 1;
  int threads = gpu::kMostThreads;
  size_t shared_bytes = 0;  // of TN_DYNAMIC_SHARED
};
// Enough threads for n items of `each`, and no more than fill the device a few times over: loops
// with a grid's stride do the rest.
Grid grid_for(const CudaDevice& device, int64_t n, int64_t each = 1);
// Threads that share a row of n elements, some `each` for a thread: a power of two, a block's at
// most.
int lanes_for(int64_t n, int64_t each);

// A kernel of the file kernels/cuda/**/<image>.cu, for all devices; found when it is first
// launched.
class GpuFunction {
 public:
  constexpr explicit GpuFunction(const char* name) : name_(name) {}
  GpuFunction(const GpuFunction& other) : GpuFunction(other.name_) {}
  GpuFunction& operator=(const GpuFunction&) = delete;

  // Queued. Arguments have exactly the types of the kernel's parameters. Nothing is launched for no
  // blocks. Errors: as CudaDevice::check(); Internal where there is no kernel of that name;
  // FailedPrecondition where the device code cannot be loaded.
  template <class... Args>
  void launch(CudaDevice& device, const Grid& grid, Args... arguments) const {
    static_assert((std::is_trivially_copyable_v<Args> && ...));
    void* parameters[] = {&arguments..., nullptr};
    launch_with(device, grid, parameters);
  }

 private:
  void launch_with(CudaDevice& device, const Grid& grid, void** parameters) const;
  CUkernel handle() const;

  const char* name_;
  mutable std::atomic<CUkernel> handle_{nullptr};
};

// Of a kernel whose name is put together; it stays valid.
const char* kept_name(const std::string& name);
// A kernel of `what` on a dtype: "softmax" on float32 is softmax_float32.
GpuFunction function_for(std::string_view what, DType dtype);

// A kernel from a callable f(RunContext&, CudaDevice&), or f(RunContext&, CudaDevice&, Failure)
// where values may be refused, which queues what is to be done.
template <class F>
class LaunchingKernel final : public QueuedKernel {
 public:
  LaunchingKernel(CudaDevice& device, F f) : QueuedKernel(device), f_(std::move(f)) {
    cost_ns = kLaunchNs;
  }
  void enqueue(RunContext& c, Failure failure) const override {
    auto& device = static_cast<CudaDevice&>(this->device());
    if constexpr (std::is_invocable_v<const F&, RunContext&, CudaDevice&, Failure>) {
      f_(c, device, failure);
    } else {
      f_(c, device);
    }
  }

 private:
  static constexpr double kLaunchNs = 3000;
  F f_;
};

template <class F>
std::unique_ptr<Kernel> make_launching_kernel(Device& device, F&& f) {
  return std::make_unique<LaunchingKernel<std::decay_t<F>>>(static_cast<CudaDevice&>(device),
                                                            std::forward<F>(f));
}
template <class F>
std::unique_ptr<Kernel> make_launching_kernel(const PrepareContext& p, F&& f) {
  return make_launching_kernel(p.device(), std::forward<F>(f));
}

// All outputs are zeros, as where there is nothing to compute them from.
std::unique_ptr<Kernel> prepare_zeros(const PrepareContext& p);

}  // namespace treenail::cuda
