// SPDX-License-Identifier: Apache-2.0
// A pass of a running combination along the middle axis of [outer, extent, inner], which is cut
// into chunks.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kScanEach = 8;  // neighbours that a thread takes of a row

struct ScanPass {
  int64_t outer = 1, extent = 0, inner = 1;
  int64_t chunk = 1, chunks = 1;
  int32_t lanes = 1;  // threads for a chunk of a row, where inner is 1
  int32_t exclusive = 0, reverse = 0;
};

}  // namespace treenail::gpu

// ROW(operation, type it is computed in, type in memory, its name)
#define TN_SCANS_OF(ROW, Op)          \
  ROW(Op, float, float, float32)      \
  ROW(Op, double, double, float64)    \
  ROW(Op, float, Float16, float16)    \
  ROW(Op, float, BFloat16, bfloat16)  \
  ROW(Op, uint32_t, uint8_t, uint8)   \
  ROW(Op, uint32_t, uint16_t, uint16) \
  ROW(Op, uint32_t, uint32_t, uint32) \
  ROW(Op, uint64_t, uint64_t, uint64)
#define TN_SCANS(ROW) TN_SCANS_OF(ROW, Sum) TN_SCANS_OF(ROW, Product)
