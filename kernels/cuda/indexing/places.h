// SPDX-License-Identifier: Apache-2.0
// Indices [n, depth] into the first axes of an array, which together are its rows.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kMaxDepth = 32;

enum Skips : int32_t { kSkipsNegative = 1, kSkipsBeyond = 2 };

struct Places {
  int64_t n, rows;
  int32_t depth;
  int32_t skips;  // indices of depth 1: which ones out of range choose nothing
  int64_t limits[kMaxDepth];
};

}  // namespace treenail::gpu
