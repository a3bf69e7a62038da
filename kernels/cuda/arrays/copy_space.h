// SPDX-License-Identifier: Apache-2.0
// What a launch of arrays/copy.cu copies: up to kCopyAxes axes, the innermost last, strides in
// elements.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kCopyAxes = 8;

struct CopySpace {
  int64_t elements = 1;
  int rank = 0;
  int64_t extent[kCopyAxes] = {};
  int64_t from[kCopyAxes] = {};
  int64_t to[kCopyAxes] = {};
};

}  // namespace treenail::gpu
