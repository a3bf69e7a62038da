// SPDX-License-Identifier: Apache-2.0
// Sums of tensors of one shape on a GPU's queue.
#pragma once

#include <span>
#include <vector>

#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// The dtypes that can be added: all numbers.
const std::vector<DType>& added_types();

// Queued: y = terms[0] + terms[1] + ..., in this order. The arrays at `terms` are of y's shape and
// dtype, at least one; y may be terms[0].
void add_arrays(CudaDevice& device, std::span<const void* const> terms, Tensor& y);

}  // namespace treenail::cuda
