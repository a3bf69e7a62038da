// SPDX-License-Identifier: Apache-2.0
// Triangular matrices of a few diagonals and their right sides, which are broadcast: where things
// are.
#pragma once

#include <cstdint>

#include "framework/base/small_vector.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

// Which matrix and which right side a system of the broadcast batch has.
struct BroadcastBatch {
  struct Axis {
    int64_t extent, matrix_step, rhs_step;  // 0: broadcast
  };
  SmallVector<Axis, 2> axes;

  BroadcastBatch(const Shape& matrix, const Shape& rhs, const Shape& both) {
    int64_t matrix_step = 1, rhs_step = 1;
    for (int i = both.rank() - 1; i >= 0; --i) {
      const int64_t a = extent(matrix, i - both.rank()), b = extent(rhs, i - both.rank());
      axes.push_back({both.dim(i), a == 1 ? 0 : matrix_step, b == 1 ? 0 : rhs_step});
      matrix_step *= a;
      rhs_step *= b;
    }
  }
  struct Entries {
    int64_t matrix = 0, rhs = 0;
  };
  Entries entries(int64_t index) const {
    Entries result;
    for (const Axis& axis : axes) {
      const int64_t at = index % axis.extent;
      index /= axis.extent;
      result.matrix += at * axis.matrix_step;
      result.rhs += at * axis.rhs_step;
    }
    return result;
  }

 private:
  static int64_t extent(const Shape& shape, int from_end) {
    const int axis = shape.rank() + from_end;
    return axis >= 0 ? shape.dim(axis) : 1;
  }
};

// How the bands of A, or of its adjoint, stand in memory.
struct Bands {
  int64_t count, n;
  bool lower, adjoint;

  bool downwards() const { return lower != adjoint; }  // the first unknown is found first
  // Of the element that row i has `distance` from the diagonal, on its side of it.
  int64_t place(int64_t i, int64_t distance) const {
    const int64_t band = lower ? distance : count - 1 - distance;
    // The adjoint's row i is A's column i.
    return band * n + (!adjoint ? i : lower ? i + distance : i - distance);
  }
};

}  // namespace treenail::host
