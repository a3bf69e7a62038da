// SPDX-License-Identifier: Apache-2.0
// Algebraic functions of one operand; all defined to the bit by IEEE 754 or wrapping integers.
#pragma once

#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct Abs : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return absolute(x);
    return x < V{} ? wrap_sub(V{}, x) : x;
  }
};
struct Neg : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return -x;
    return wrap_sub(V{}, x);
  }
};
struct Sign : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V one = splat<V>(1), zero{};
    const V y = x < zero ? wrap_sub(zero, one) : x;
    return x > zero ? one : (x == zero ? zero : y);
  }
};
struct Reciprocal : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return splat<V>(1) / x;
  }
};
struct Square : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return wrap_mul(x, x);
  }
};
struct Sqrt : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return square_root(x);
  }
};
struct Rsqrt : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return splat<V>(1) / square_root(x);
  }
};

// Beyond 2^mantissa every number is whole; below, adding and taking it away rounds to nearest,
// halves to even.
template <class V>
TN_INLINE V nearest(V x) {
  const V whole = splat<V>(sizeof(ElementOf<V>) == 4 ? ElementOf<V>(8388608.0)
                                                     : ElementOf<V>(4503599627370496.0));
  const V a = absolute(x);
  return copy_sign(a < whole ? (a + whole) - whole : a, x);
}
struct Round : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return nearest(x);
    return x;
  }
};
struct Floor : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V n = nearest(x);
    return copy_sign(n > x ? n - splat<V>(1) : n, x);
  }
};
struct Ceil : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V n = nearest(x);
    return copy_sign(n < x ? n + splat<V>(1) : n, x);
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_UNARY_OPS(ROW)                   \
  ROW(Abs, Abs, float, 0.05f)               \
  ROW(Abs, Abs, double, 0.1f)               \
  ROW(Abs, Abs, int32_t, 0.05f)             \
  ROW(Abs, Abs, int64_t, 0.1f)              \
  ROW(Neg, Neg, float, 0.05f)               \
  ROW(Neg, Neg, double, 0.1f)               \
  ROW(Neg, Neg, int32_t, 0.05f)             \
  ROW(Neg, Neg, int64_t, 0.1f)              \
  ROW(Sign, Sign, float, 0.08f)             \
  ROW(Sign, Sign, double, 0.15f)            \
  ROW(Sign, Sign, int32_t, 0.08f)           \
  ROW(Sign, Sign, int64_t, 0.2f)            \
  ROW(Reciprocal, Reciprocal, float, 0.2f)  \
  ROW(Reciprocal, Reciprocal, double, 0.6f) \
  ROW(Square, Square, float, 0.05f)         \
  ROW(Square, Square, double, 0.1f)         \
  ROW(Square, Square, int32_t, 0.05f)       \
  ROW(Square, Square, int64_t, 0.3f)        \
  ROW(Sqrt, Sqrt, float, 0.3f)              \
  ROW(Sqrt, Sqrt, double, 1.0f)             \
  ROW(Rsqrt, Rsqrt, float, 0.5f)            \
  ROW(Rsqrt, Rsqrt, double, 1.5f)           \
  ROW(Floor, Floor, float, 0.1f)            \
  ROW(Floor, Floor, double, 0.2f)           \
  ROW(Ceil, Ceil, float, 0.1f)              \
  ROW(Ceil, Ceil, double, 0.2f)             \
  ROW(Round, Round, float, 0.1f)            \
  ROW(Round, Round, double, 0.2f)           \
  ROW(Round, Round, int32_t, 0.05f)         \
  ROW(Round, Round, int64_t, 0.1f)          \
  ROW(Rint, Round, float, 0.1f)             \
  ROW(Rint, Round, double, 0.2f)
