// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two operands; all that IEEE 754 or wrapping integers define to the bit. Division of
// integers and remainders: division.h.
#pragma once

#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct Add : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_add(a, b);
  }
};
struct Sub : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_sub(a, b);
  }
};
struct Mul : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_mul(a, b);
  }
};
struct TrueDiv : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a / b;
  }
};
// A NaN in either operand is the result, as in NumPy.
struct Maximum : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    if constexpr (is_float_vec<V>) return a != a ? a : greater_of(a, b);
    return greater_of(a, b);
  }
};
struct Minimum : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    if constexpr (is_float_vec<V>) return a != a ? a : lesser_of(a, b);
    return lesser_of(a, b);
  }
};
struct SquaredDifference : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    const V d = wrap_sub(a, b);
    return wrap_mul(d, d);
  }
};
struct DivNoNan : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return b == V{} ? V{} : a / b;
  }
};
struct MulNoNan : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return b == V{} ? V{} : a * b;
  }
};
struct Xdivy : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a == V{} ? V{} : a / b;
  }
};

// Floats are ordered as their bits are, the negative ones the other way round.
struct NextAfter : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    using U = Unsigned<V>;
    const U up = bits<U>(a) + 1, down = bits<U>(a) - 1;
    const V longer = bits<V>(up), shorter = bits<V>(down);
    const V above = a > V{} ? longer : shorter, below = a > V{} ? shorter : longer;
    const V tiny = copy_sign(bits<V>((U)(U{} + 1)), b);
    const V moved = a < b ? above : below;
    const V next = a == V{} ? tiny : moved;
    const V same = a == b ? b : next;
    return (a != a) | (b != b) ? a + b : same;
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_ARITHMETIC_OPS(ROW)                              \
  ROW(Add, Add, float, 0.05f)                               \
  ROW(Add, Add, double, 0.1f)                               \
  ROW(Add, Add, int32_t, 0.05f)                             \
  ROW(Add, Add, int64_t, 0.1f)                              \
  ROW(Sub, Sub, float, 0.05f)                               \
  ROW(Sub, Sub, double, 0.1f)                               \
  ROW(Sub, Sub, int32_t, 0.05f)                             \
  ROW(Sub, Sub, int64_t, 0.1f)                              \
  ROW(Mul, Mul, float, 0.05f)                               \
  ROW(Mul, Mul, double, 0.1f)                               \
  ROW(Mul, Mul, int32_t, 0.05f)                             \
  ROW(Mul, Mul, int64_t, 0.3f)                              \
  ROW(Div, TrueDiv, float, 0.2f)                            \
  ROW(Div, TrueDiv, double, 0.6f)                           \
  ROW(RealDiv, TrueDiv, float, 0.2f)                        \
  ROW(RealDiv, TrueDiv, double, 0.6f)                       \
  ROW(Maximum, Maximum, float, 0.06f)                       \
  ROW(Maximum, Maximum, double, 0.12f)                      \
  ROW(Maximum, Maximum, int32_t, 0.05f)                     \
  ROW(Maximum, Maximum, int64_t, 0.1f)                      \
  ROW(Minimum, Minimum, float, 0.06f)                       \
  ROW(Minimum, Minimum, double, 0.12f)                      \
  ROW(Minimum, Minimum, int32_t, 0.05f)                     \
  ROW(Minimum, Minimum, int64_t, 0.1f)                      \
  ROW(SquaredDifference, SquaredDifference, float, 0.05f)   \
  ROW(SquaredDifference, SquaredDifference, double, 0.1f)   \
  ROW(SquaredDifference, SquaredDifference, int32_t, 0.05f) \
  ROW(SquaredDifference, SquaredDifference, int64_t, 0.3f)  \
  ROW(DivNoNan, DivNoNan, float, 0.2f)                      \
  ROW(DivNoNan, DivNoNan, double, 0.6f)                     \
  ROW(MulNoNan, MulNoNan, float, 0.05f)                     \
  ROW(MulNoNan, MulNoNan, double, 0.1f)                     \
  ROW(QuotientGrad, Xdivy, float, 0.2f)                     \
  ROW(QuotientGrad, Xdivy, double, 0.6f)                    \
  ROW(NextAfter, NextAfter, float, 0.1f)                    \
  ROW(NextAfter, NextAfter, double, 0.2f)                   \
  ROW(Xdivy, Xdivy, float, 0.2f)                            \
  ROW(Xdivy, Xdivy, double, 0.6f)
