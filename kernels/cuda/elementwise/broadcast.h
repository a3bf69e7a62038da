// SPDX-License-Identifier: Apache-2.0
// How the operands of an element-wise kernel lie against its result: a structure of numbers that
// the host fills and each launch passes by value.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kMostDimensions = 8;
inline constexpr int kMostOperands = 3;

// The result is contiguous. The dimension of operands that are all contiguous, or one element, is
// one: their strides in it 1, or 0. Dimensions that lie alike in all operands should be joined.
struct Broadcast {
  int32_t rank = 0;
  bool small = true;                   // fewer than 2^31 elements: quotients by multiplication
  int64_t size[kMostDimensions] = {};  // the innermost first
  uint64_t multiplier[kMostDimensions] = {};
  uint32_t shift[kMostDimensions] = {};
  int64_t stride[kMostOperands][kMostDimensions] = {};  // in elements; 0 repeats
};

__extension__ using Product = unsigned __int128;

// i / size = (i * multiplier / 2^64 + i) / 2^shift for i below 2^63 (Granlund and Montgomery,
// "Division by invariant integers using multiplication", 1994).
inline void set_quotient(Broadcast& how, int dimension) {
  const auto size = static_cast<uint64_t>(how.size[dimension]);
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < size) ++shift;
  const Product rest = (uint64_t{1} << shift) - size;
  how.shift[dimension] = shift;
  how.multiplier[dimension] = static_cast<uint64_t>((rest << 64) / size + 1);
}

// Adds a dimension outside those that are there; `stride`: one for each operand.
inline void add_dimension(Broadcast& how, int64_t size, const int64_t* stride, int operands) {
  const int d = how.rank++;
  how.size[d] = size;
  for (int k = 0; k < operands; ++k) how.stride[k][d] = stride[k];
  set_quotient(how, d);
}

}  // namespace treenail::gpu
