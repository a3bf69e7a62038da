// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN: by its heuristics' first choice among the algorithms that give the same
// bits each time, on images in the layout that it has such an algorithm for.
#pragma once

#include <cstddef>
#include <memory>

#include "framework/tensor/dtype.h"
#include "kernels/cuda/driver/device.h"
#include "kernels/host/convolution/conv_geometry.h"

namespace treenail::cuda {

class DnnConvolution {
 public:
  static constexpr size_t kAlignment = 16;  // of all tensors

  // Null where cuDNN is absent or computes no such convolution.
  static std::unique_ptr<DnnConvolution> find(CudaDevice& device, host::ConvPass pass,
                                              const host::ConvGeometry& g, DType dtype);
  virtual ~DnnConvolution() = default;

  // Queued. `a` and `b`: input and filter, filter and gradient (for the input), or input and
  // gradient (for the filter). False, with nothing done, where cuDNN refuses what it had offered.
  // Errors: as CudaDevice::check().
  virtual bool launch(const void* a, const void* b, void* out, std::byte* scratch) const = 0;
  size_t scratch_bytes = 0;
};

}  // namespace treenail::cuda
