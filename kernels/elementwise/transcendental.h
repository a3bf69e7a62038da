// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, tanh, sigmoid and erf by vec_math.h.
#pragma once

#include "kernels/cpu/simd/vec_math.h"
#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct Exp : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return exp(x);
  }
  template <class V>
  TN_INLINE static auto usual(V x) {
    return absolute(x) <= splat<V>(kExpNormal<V>);
  }
  template <class V>
  TN_INLINE static V apply_usual(V x) {
    return exp_normal(x);
  }
};
struct Expm1 : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return expm1(x); }
};
struct Log : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return log(x);
  }
  template <class V>
  TN_INLINE static auto usual(V x) {
    using L = Limits<ElementOf<V>>;
    return (x >= splat<V>(L::kLeast)) & (x <= splat<V>(L::kMost));
  }
  template <class V>
  TN_INLINE static V apply_usual(V x) {
    return log_normal(x);
  }
};
struct Tanh : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return tanh(x); }
};
struct Sigmoid : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return sigmoid(x);
  }
};
struct Erf : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return erf(x); }
};
// dy (1 - y²) and dy y (1 - y): exact operations, so body and tail agree.
struct TanhGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V y, V dy) {
    return dy * (number<V>(1) - y * y);
  }
};
struct SigmoidGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V y, V dy) {
    return dy * (y * (number<V>(1) - y));
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_TRANSCENDENTAL_UNARY_OPS(ROW) \
  ROW(Exp, Exp, float, 0.35f)            \
  ROW(Exp, Exp, double, 1.0f)            \
  ROW(Expm1, Expm1, float, 0.4f)         \
  ROW(Log, Log, float, 0.5f)             \
  ROW(Log, Log, double, 1.5f)            \
  ROW(Tanh, Tanh, float, 0.6f)           \
  ROW(Sigmoid, Sigmoid, float, 0.5f)     \
  ROW(Sigmoid, Sigmoid, double, 1.5f)    \
  ROW(Erf, Erf, float, 0.8f)
#define TN_TRANSCENDENTAL_BINARY_OPS(ROW)     \
  ROW(TanhGrad, TanhGrad, float, 0.06f)       \
  ROW(TanhGrad, TanhGrad, double, 0.12f)      \
  ROW(SigmoidGrad, SigmoidGrad, float, 0.06f) \
  ROW(SigmoidGrad, SigmoidGrad, double, 0.12f)
