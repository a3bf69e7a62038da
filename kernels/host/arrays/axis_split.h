// SPDX-License-Identifier: Apache-2.0
// A shape seen from one axis: [outer][axis][inner].
#pragma once

#include <cstdint>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

struct AxisSplit {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

// At the axis that host input `input` names (a scalar that the shape rule checked).
inline AxisSplit split_at_axis(const PrepareContext& c, int input) {
  const Shape& shape = c.input_shape(0);
  int64_t axis = scalar_int64(c.host_value(input));
  if (axis < 0) axis += shape.rank();
  AxisSplit split;
  for (int i = 0; i < shape.rank(); ++i) {
    (i < axis ? split.outer : i == axis ? split.extent : split.inner) *= shape.dim(i);
  }
  return split;
}

}  // namespace treenail::host
