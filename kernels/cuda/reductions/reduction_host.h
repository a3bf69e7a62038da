// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce input 0 of an op to its output 0, and what others reduce beside their work.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/reductions/reduce_pass.h"

namespace treenail::cuda {

// `operation`: of reductions.h; there is one for the input's dtype. The axes flagged go.
std::unique_ptr<Kernel> make_reduction_kernel(const PrepareContext& p, std::string_view operation,
                                              gpu::Finish finish, const std::vector<bool>& reduced);

// Of an array, wherever it lies.
class ArrayReduction {
 public:
  ArrayReduction(std::string_view operation, DType dtype, const Shape& shape,
                 const std::vector<bool>& reduced, gpu::Finish finish = gpu::Finish::kNone);
  size_t scratch_bytes() const { return 2 * bytes_; }
  // Queued. Errors: as CudaDevice::check().
  void launch(CudaDevice& device, const void* from, void* to, std::byte* scratch) const;

 private:
  struct Pass {
    gpu::ReducePass what;
    const GpuFunction* function;
  };
  std::vector<Pass> passes_;
  size_t bytes_;  // of each of two buffers for partial results
};

}  // namespace treenail::cuda
