// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers. Narrow types are computed as wider ones, so a shift is told
// the width of its own type.
#pragma once

#include "kernels/elementwise/definition.h"
#include "kernels/elementwise/logic.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct Invert : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return ~x;
  }
};

// `most`: one less than the bits of the type, the longest shift.
struct LeftShift {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V x, V by, V most) {
    const V places = lesser_of(most, greater_of(V{}, by));
    return (V)((Unsigned<V>)x << (Unsigned<V>)places);
  }
};
struct RightShift {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V x, V by, V most) {
    return x >> lesser_of(most, greater_of(V{}, by));
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_BITWISE_BINARY_OPS(ROW)     \
  ROW(BitwiseAnd, And, int32_t, 0.05f) \
  ROW(BitwiseAnd, And, int64_t, 0.1f)  \
  ROW(BitwiseOr, Or, int32_t, 0.05f)   \
  ROW(BitwiseOr, Or, int64_t, 0.1f)    \
  ROW(BitwiseXor, Xor, int32_t, 0.05f) \
  ROW(BitwiseXor, Xor, int64_t, 0.1f)
#define TN_BITWISE_UNARY_OPS(ROW)     \
  ROW(Invert, Invert, int32_t, 0.05f) \
  ROW(Invert, Invert, int64_t, 0.1f)
#define TN_SHIFT_OPS(ROW)                    \
  ROW(LeftShift, LeftShift, int32_t, 0.1f)   \
  ROW(LeftShift, LeftShift, int64_t, 0.2f)   \
  ROW(RightShift, RightShift, int32_t, 0.1f) \
  ROW(RightShift, RightShift, int64_t, 0.2f)
