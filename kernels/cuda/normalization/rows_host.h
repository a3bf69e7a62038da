// SPDX-License-Identifier: Apache-2.0
// Launches over rows: the host's side of normalization/rows.h.
#pragma once

#include <cstdint>

#include "framework/tensor/shape.h"
#include "kernels/cuda/driver/kernels.h"

namespace treenail::cuda {

// Rows of n elements along the last axis, some `each` for a thread.
struct Rows {
  int64_t rows, n;
  int lanes;
  Rows(const Shape& shape, int64_t each)
      : rows(shape.sub(0, shape.rank() - 1).num_elements()),
        n(shape.dim(shape.rank() - 1)),
        lanes(lanes_for(n, each)) {}
  Grid grid(const CudaDevice& device) const { return grid_for(device, rows * lanes); }
};

}  // namespace treenail::cuda
