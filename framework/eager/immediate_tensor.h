// SPDX-License-Identifier: Apache-2.0
// A tensor of immediate execution: a value, and how the records of tapes know it.
#pragma once

#include <cstdint>

#include "framework/op/gradient.h"
#include "framework/tensor/tensor.h"

namespace treenail {

struct ImmediateTensor {
  Tensor tensor;
  // Value `value` of record number `record` (tape.h); of none: 0.
  uint64_t record = 0;
  int64_t value = -1;
  // What records that watch the tensor itself know it by; 0 until one does.
  uint64_t watch_key = 0;
};

// Gradient of op/gradient.h, with tensors.
struct ImmediateGradient {
  Gradient::Kind kind = Gradient::Kind::kNone;
  ImmediateTensor dense;
  ImmediateTensor values, indices, dense_shape;
};

}  // namespace treenail
