// SPDX-License-Identifier: Apache-2.0
// An array and the larger one around it, whose borders mirror it.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

inline constexpr int kMirrorAxes = 33;  // of the largest rank, and the parts of complex numbers

struct MirrorAxis {
  Divisor inner, outer;  // extents, without borders and with them
  int64_t before = 0;    // elements of the border
  int64_t inner_stride = 1, outer_stride = 1;
};

// The innermost axis first.
struct MirrorSpace {
  int64_t n = 0;  // elements of the result
  int32_t rank = 0;
  int32_t offset = 0;  // 1: an edge is not repeated
  MirrorAxis axis[kMirrorAxes] = {};
};

}  // namespace treenail::gpu
