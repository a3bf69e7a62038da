// SPDX-License-Identifier: Apache-2.0
// How the operands of an element-wise kernel lie against its result: a structure of numbers that
// the host fills and each launch passes by value.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

inline constexpr int kMostDimensions = 8;
inline constexpr int kMostOperands = 3;

// The result is contiguous. The dimension of operands that are all contiguous, or one element, is
// one: their strides in it 1, or 0. Dimensions that lie alike in all operands should be joined.
template <int kOperands>
struct BroadcastOf {
  int32_t rank = 0;
  Divisor size[kMostDimensions] = {};               // the innermost first
  int64_t stride[kOperands][kMostDimensions] = {};  // in elements; 0 repeats
};
using Broadcast = BroadcastOf<kMostOperands>;

// Adds a dimension outside those that are there; `stride`: one for each operand.
template <int kOperands>
void add_dimension(BroadcastOf<kOperands>& how, int64_t size, const int64_t* stride, int operands) {
  const int d = how.rank++;
  how.size[d] = divisor_of(size);
  for (int k = 0; k < operands; ++k) how.stride[k][d] = stride[k];
}

}  // namespace treenail::gpu
