// SPDX-License-Identifier: Apache-2.0
// The geometry MatMul and BatchMatMul share on every device: one product per batch entry, broadcast
// batches, and which entry of each operand it takes. Rows of a batch that share one right operand
// are one tall product.
#pragma once

#include <cstdint>

#include "framework/base/small_vector.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::host {

struct BatchGeometry {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool adjoint = false;  // transposition conjugates
  struct Axis {
    int64_t extent = 1, step_a = 0, step_b = 0;  // steps in matrices; 0: broadcast
  };
  SmallVector<Axis, 2> axes;  // of the batch
  bool same_b = true;         // one right operand for the whole batch

  // For an op of two inputs with flags transpose_* (MatMul) or adj_*.
  static BatchGeometry of(const PrepareContext& c);

  int64_t a_elements() const { return m * k; }
  int64_t b_elements() const { return k * n; }
  int64_t c_elements() const { return m * n; }
  double work() const {
    return static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }

  // Which matrices entry `index` of the batch multiplies.
  void entries(int64_t index, int64_t& a, int64_t& b) const;
};

}  // namespace treenail::host
