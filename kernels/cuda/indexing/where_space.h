// SPDX-License-Identifier: Apache-2.0
// An array whose elements that are not zero are looked for: a block counts a chunk of them, and
// puts down where they are.
#pragma once

#include <cstdint>

#include "kernels/cuda/indexing/places.h"
#include "kernels/cuda/language/divisor.h"
#include "kernels/cuda/language/limits.h"

namespace treenail::gpu {

inline constexpr int kWhereEach = 8;  // neighbours that a thread looks at
inline constexpr int64_t kWhereChunk = int64_t{kWhereEach} * kMostThreads;

struct WhereSpace {
  int64_t n = 0, chunks = 0;
  uint64_t mask = 0;  // of an element's bits, those that make it true; of 16 bytes, of either half
  int32_t rank = 0;
  Divisor extent[kMaxDepth] = {};  // the innermost first
};

}  // namespace treenail::gpu
