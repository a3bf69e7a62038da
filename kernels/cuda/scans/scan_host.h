// SPDX-License-Identifier: Apache-2.0
// Running sums on a GPU's queue, for kernels that place what they write by them.
#pragma once

#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// Queued: element i is the sum of the elements before it. `counts`: uint64 [n].
Tensor sums_before(CudaDevice& device, const Tensor& counts);

}  // namespace treenail::cuda
