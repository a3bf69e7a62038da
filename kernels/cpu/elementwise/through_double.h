// SPDX-License-Identifier: Apache-2.0
// From a function of doubles to the loops of the same function of floats: widened, computed and
// rounded once.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_math.h"

namespace treenail::cpu {

TN_INLINE VecD widen(HalfVecF x) { return __builtin_convertvector(x, VecD); }
TN_INLINE HalfVecF narrow(VecD x) { return __builtin_convertvector(x, HalfVecF); }
TN_INLINE VecD number(double x) { return splat<VecD>(x); }
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What rounding left of the product p = a * b. Without a fused multiply-add by halves, whose
// products are exact (Dekker, "A floating-point technique for extending the available precision",
// 1971).
TN_INLINE VecD product_rest(VecD a, VecD b, VecD p) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return mul_add(a, b, -p);
#else
  const VecL upper = ~(((VecL{} + 1) << 27) - 1);
  const VecD high_a = bits<VecD>(bits<VecL>(a) & upper), low_a = a - high_a;
  const VecD high_b = bits<VecD>(bits<VecL>(b) & upper), low_b = b - high_b;
  return ((high_a * high_b - p) + high_a * low_b + low_a * high_b) + low_a * low_b;
#endif
}

// Each f maps VecD to VecD; `library` is used for the elements that `f` does not cover (kLimit:
// largest |x|).
template <class Op>
TN_INLINE HalfVecF evaluate(HalfVecF x) {
  const VecD wide = widen(x);
  HalfVecF y = narrow(Op::apply(wide));
  if constexpr (Op::kLimited) {
    if (any(absolute(wide) > number(kMostRadians))) {
      for (int i = 0; i < kLanes<double>; ++i) {
        if (std::fabs(x[i]) > static_cast<float>(kMostRadians)) y[i] = Op::library(x[i]);
      }
    }
  }
  return y;
}

template <class Op>
void unary_through_double(void* y, const void* a, const void*, const void*, int64_t n,
                          const LoopParams&) {
  constexpr int64_t kL = kLanes<double>;
  const auto* p = static_cast<const float*>(a);
  auto* r = static_cast<float*>(y);
  for (; n >= kL; n -= kL, p += kL, r += kL) store(r, evaluate<Op>(load<HalfVecF>(p)));
  if (n > 0) store_part(r, evaluate<Op>(load_part<HalfVecF>(p, n)), n);
}

template <class Op>
struct ThroughDouble {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x) {
    HalfVecF half[2];
    std::memcpy(half, &x, sizeof x);
    half[0] = evaluate<Op>(half[0]);
    half[1] = evaluate<Op>(half[1]);
    std::memcpy(&x, half, sizeof x);
    return x;
  }
};
template <class Op>
constexpr Loops loops_through_double() {
  return {{unary_through_double<Op>}, unary_forms<ThroughDouble<Op>, float>()};
}

struct Unlimited {
  static constexpr bool kLimited = false;
};

}  // namespace treenail::cpu
