// SPDX-License-Identifier: Apache-2.0
// Rows of updates that are combined into rows of a target, `width` numbers each.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct RowMerge {
  int64_t width;
  int32_t single;  // so many numbers stand for all rows of updates, again and again; 0: each has
                   // its own
  int32_t onto;    // the target's row is the first of them, and each step is rounded to its type
};

}  // namespace treenail::gpu

// ROW(operation, type in memory, its name). Integers of one size wrap alike.
#define TN_FLOAT_MERGES(ROW, Op) \
  ROW(Op, float, float32)        \
  ROW(Op, double, float64)       \
  ROW(Op, Float16, float16)      \
  ROW(Op, BFloat16, bfloat16)
#define TN_UNSIGNED_MERGES(ROW, Op) \
  ROW(Op, uint8_t, uint8)           \
  ROW(Op, uint16_t, uint16)         \
  ROW(Op, uint32_t, uint32)         \
  ROW(Op, uint64_t, uint64)
#define TN_SIGNED_MERGES(ROW, Op) \
  ROW(Op, int8_t, int8)           \
  ROW(Op, int16_t, int16)         \
  ROW(Op, int32_t, int32)         \
  ROW(Op, int64_t, int64)
#define TN_WRAPPING_MERGES(ROW, Op) TN_FLOAT_MERGES(ROW, Op) TN_UNSIGNED_MERGES(ROW, Op)
#define TN_ORDER_MERGES(ROW, Op) TN_WRAPPING_MERGES(ROW, Op) TN_SIGNED_MERGES(ROW, Op)
// Sums, divided by the number of rows, and by its square root.
#define TN_MEANS(ROW) TN_ORDER_MERGES(ROW, Mean) TN_FLOAT_MERGES(ROW, SqrtN)
#define TN_MERGES(ROW)              \
  TN_WRAPPING_MERGES(ROW, Add)      \
  TN_WRAPPING_MERGES(ROW, Subtract) \
  TN_WRAPPING_MERGES(ROW, Multiply) \
  TN_ORDER_MERGES(ROW, Minimum)     \
  TN_ORDER_MERGES(ROW, Maximum)
