// SPDX-License-Identifier: Apache-2.0
// What is reduced on a GPU: ROW(operation, type it is computed in, type in memory of what is read
// and its name, of what is written and its name). Half types are read by the first pass and written
// by the last; between passes lie floats.
#pragma once

#define TN_PLAIN_REDUCTION(ROW, Op, T, name) ROW(Op, T, T, name, T, name)
#define TN_HALF_REDUCTION(ROW, Op, Half, name) \
  ROW(Op, float, Half, name, Half, name)       \
  ROW(Op, float, Half, name, float, float32)   \
  ROW(Op, float, float, float32, Half, name)
#define TN_FLOAT_REDUCTIONS(ROW, Op)           \
  TN_PLAIN_REDUCTION(ROW, Op, float, float32)  \
  TN_PLAIN_REDUCTION(ROW, Op, double, float64) \
  TN_HALF_REDUCTION(ROW, Op, Float16, float16) \
  TN_HALF_REDUCTION(ROW, Op, BFloat16, bfloat16)
// Sums of many integers leave their type and the mean comes back to it: what lies between passes
// has 64 bits.
#define TN_INTEGER_REDUCTION(ROW, Op, Int, name) \
  ROW(Op, int64_t, Int, name, Int, name)         \
  ROW(Op, int64_t, Int, name, int64_t, int64)    \
  ROW(Op, int64_t, int64_t, int64, Int, name)
#define TN_NUMBER_REDUCTIONS(ROW, Op)             \
  TN_FLOAT_REDUCTIONS(ROW, Op)                    \
  TN_INTEGER_REDUCTION(ROW, Op, int8_t, int8)     \
  TN_INTEGER_REDUCTION(ROW, Op, uint8_t, uint8)   \
  TN_INTEGER_REDUCTION(ROW, Op, int16_t, int16)   \
  TN_INTEGER_REDUCTION(ROW, Op, uint16_t, uint16) \
  TN_INTEGER_REDUCTION(ROW, Op, int32_t, int32)   \
  TN_INTEGER_REDUCTION(ROW, Op, uint32_t, uint32) \
  TN_PLAIN_REDUCTION(ROW, Op, int64_t, int64)     \
  TN_PLAIN_REDUCTION(ROW, Op, uint64_t, uint64)
#define TN_ORDER_REDUCTIONS(ROW, Op)            \
  TN_FLOAT_REDUCTIONS(ROW, Op)                  \
  TN_PLAIN_REDUCTION(ROW, Op, int8_t, int8)     \
  TN_PLAIN_REDUCTION(ROW, Op, uint8_t, uint8)   \
  TN_PLAIN_REDUCTION(ROW, Op, int16_t, int16)   \
  TN_PLAIN_REDUCTION(ROW, Op, uint16_t, uint16) \
  TN_PLAIN_REDUCTION(ROW, Op, int32_t, int32)   \
  TN_PLAIN_REDUCTION(ROW, Op, uint32_t, uint32) \
  TN_PLAIN_REDUCTION(ROW, Op, int64_t, int64)   \
  TN_PLAIN_REDUCTION(ROW, Op, uint64_t, uint64)

#define TN_REDUCTIONS(ROW)                 \
  TN_NUMBER_REDUCTIONS(ROW, Sum)           \
  TN_FLOAT_REDUCTIONS(ROW, SumOfSquares)   \
  TN_NUMBER_REDUCTIONS(ROW, Prod)          \
  TN_ORDER_REDUCTIONS(ROW, Max)            \
  TN_ORDER_REDUCTIONS(ROW, Min)            \
  TN_PLAIN_REDUCTION(ROW, And, bool, bool) \
  TN_PLAIN_REDUCTION(ROW, Or, bool, bool)
