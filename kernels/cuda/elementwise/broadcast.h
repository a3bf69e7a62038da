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
struct Broadcast {
  int32_t rank = 0;
  Divisor size[kMostDimensions] = {};                   // the innermost first
  int64_t stride[kMostOperands][kMostDimensions] = {};  // in elements; 0 repeats
};

// Adds a dimension outside those that are there; `stride`: one for each operand.
inline void add_dimension(Broadcast& how, int64_t size, const int64_t* stride, int operands) {
  const int d = how.rank++;
  how.size[d] = divisor_of(size);
  for (int k = 0; k < operands; ++k) how.stride[k][d] = stride[k];
}

}  // namespace treenail::gpu
