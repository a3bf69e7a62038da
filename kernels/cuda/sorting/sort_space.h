// SPDX-License-Identifier: Apache-2.0
// Pairs of a key and its position in rows [rows, n], which are cut into tiles that a block sorts in
// shared memory. Positions count from the begin of the row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/language/limits.h"

namespace treenail::gpu {

inline constexpr int kDigitBits = 8;  // that a pass over tiles sorts by
inline constexpr int kDigits = 1 << kDigitBits;
// Of a tile: what leaves room for counters in the 48 KiB of shared memory that each GPU has.
template <class Key>
inline constexpr int kTilePairs = sizeof(Key) == 8 ? 2048 : 4096;

struct SortSpace {
  int64_t rows, n;
  int64_t tiles;  // of a row
  int64_t kept;   // of a tile sorted by itself: the first of it
  int32_t begin;  // of the bits sorted by
  int32_t bits;
};

}  // namespace treenail::gpu
