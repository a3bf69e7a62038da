// SPDX-License-Identifier: Apache-2.0
// Indices [n, depth] into the first axes of an array, which together are its rows.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kMaxDepth = 32;

struct Places {
  int64_t n, rows;
  int32_t depth;
  int32_t skips_negative;  // indices of depth 1: a negative one chooses nothing
  int64_t limits[kMaxDepth];
};

}  // namespace treenail::gpu
