// SPDX-License-Identifier: Apache-2.0
// Comparisons and questions with truth values as results, and what is computed of truth values.
#pragma once

#include "kernels/elementwise/definition.h"
#include "kernels/elementwise/logic.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct Equal {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a == b;
  }
};
struct NotEqual {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a != b;
  }
};
struct Less {
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a < b;
  }
};
struct LessEqual {
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a <= b;
  }
};
struct IsNan {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return x != x;
  }
};
struct IsInf {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return absolute(x) == splat<V>(Limits<ElementOf<V>>::kInfinity);
  }
};
struct IsFinite {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return absolute(x) < splat<V>(Limits<ElementOf<V>>::kInfinity);
  }
};

// Of truth values: single ones, or lanes of ones or zeros. And, Or: logic.h.
struct Not {
  TN_INLINE static bool apply(bool a) { return !a; }
#if !defined(TN_GPU)
  TN_INLINE static VecI apply(VecI a) { return ~a; }
#endif
};
// |a - b| < tolerance, the difference taken in T.
struct ApproximateEqual {
  static constexpr bool kTakesValue = true;
  template <class T>
  TN_INLINE static bool apply(T a, T b, double tolerance) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    return static_cast<double>(wrap_sub(high, low)) < tolerance;
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_COMPARISON_OPS(ROW)              \
  ROW(Equal, Equal, float, 0.06f)           \
  ROW(Equal, Equal, double, 0.1f)           \
  ROW(Equal, Equal, int32_t, 0.06f)         \
  ROW(Equal, Equal, int64_t, 0.1f)          \
  ROW(NotEqual, NotEqual, float, 0.06f)     \
  ROW(NotEqual, NotEqual, double, 0.1f)     \
  ROW(NotEqual, NotEqual, int32_t, 0.06f)   \
  ROW(NotEqual, NotEqual, int64_t, 0.1f)    \
  ROW(Less, Less, float, 0.06f)             \
  ROW(Less, Less, double, 0.1f)             \
  ROW(Less, Less, int32_t, 0.06f)           \
  ROW(Less, Less, int64_t, 0.1f)            \
  ROW(LessEqual, LessEqual, float, 0.06f)   \
  ROW(LessEqual, LessEqual, double, 0.1f)   \
  ROW(LessEqual, LessEqual, int32_t, 0.06f) \
  ROW(LessEqual, LessEqual, int64_t, 0.1f)

// The definition with its operands the other way round.
#define TN_SWAPPED_COMPARISON_OPS(ROW)         \
  ROW(Greater, Less, float, 0.06f)             \
  ROW(Greater, Less, double, 0.1f)             \
  ROW(Greater, Less, int32_t, 0.06f)           \
  ROW(Greater, Less, int64_t, 0.1f)            \
  ROW(GreaterEqual, LessEqual, float, 0.06f)   \
  ROW(GreaterEqual, LessEqual, double, 0.1f)   \
  ROW(GreaterEqual, LessEqual, int32_t, 0.06f) \
  ROW(GreaterEqual, LessEqual, int64_t, 0.1f)

#define TN_QUESTION_OPS(ROW)            \
  ROW(IsNan, IsNan, float, 0.06f)       \
  ROW(IsNan, IsNan, double, 0.1f)       \
  ROW(IsInf, IsInf, float, 0.06f)       \
  ROW(IsInf, IsInf, double, 0.1f)       \
  ROW(IsFinite, IsFinite, float, 0.06f) \
  ROW(IsFinite, IsFinite, double, 0.1f)
#define TN_TRUTH_BINARY_OPS(ROW)      \
  ROW(Equal, Equal, bool, 0.1f)       \
  ROW(NotEqual, NotEqual, bool, 0.1f) \
  ROW(LogicalAnd, And, bool, 0.1f)    \
  ROW(LogicalOr, Or, bool, 0.1f)
#define TN_TRUTH_UNARY_OPS(ROW) ROW(LogicalNot, Not, bool, 0.1f)

// With attribute tolerance.
#define TN_APPROXIMATE_OPS(ROW)                          \
  ROW(ApproximateEqual, ApproximateEqual, float, 0.2f)   \
  ROW(ApproximateEqual, ApproximateEqual, double, 0.2f)  \
  ROW(ApproximateEqual, ApproximateEqual, int32_t, 0.2f) \
  ROW(ApproximateEqual, ApproximateEqual, int64_t, 0.2f)
