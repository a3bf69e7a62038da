// SPDX-License-Identifier: Apache-2.0
// How columns are cut, and the launches over them.
#pragma once

#include <cstdint>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/normalization/column_space.h"

namespace treenail::cuda {

// How many of `each`, the last one perhaps smaller, n is.
inline int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }

// Of an array [count / inner, columns, inner].
gpu::ColumnSpace column_space(int64_t columns, int64_t inner, int64_t count);

// For kernels over pieces: a block each.
inline Grid pieces_grid(const CudaDevice& device, const gpu::ColumnSpace& s) {
  return grid_for(device, s.blocks() * gpu::kMostThreads);
}
// For kernels that put pieces together: so many threads for each column.
inline int column_lanes(const gpu::ColumnSpace& s) { return lanes_for(s.pieces, 1); }
inline Grid columns_grid(const CudaDevice& device, const gpu::ColumnSpace& s) {
  return grid_for(device, s.columns * column_lanes(s));
}

}  // namespace treenail::cuda
