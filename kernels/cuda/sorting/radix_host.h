// SPDX-License-Identifier: Apache-2.0
// Stable sorts on a GPU, by radix.cu.
#pragma once

#include <cstdint>

#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// [rows, n]: keys in ascending order, and uint32 positions in the row that they came from.
struct SortedRows {
  Tensor keys, positions;
};

// Each row of `keys`, uint32 or uint64 [rows, n], of which the lowest `bits` are in use, and of
// which nothing is kept but what comes back. Errors: Unimplemented for rows of 2^32 elements.
SortedRows sort_rows(CudaDevice& device, Tensor keys, int bits);
// Of each the first k, or more.
SortedRows sort_rows(CudaDevice& device, Tensor keys, int bits, int64_t k);

}  // namespace treenail::cuda
