// SPDX-License-Identifier: Apache-2.0
// Float functions computed in double and rounded once: nearly correctly rounded, simple, and of
// vectors at half the width still several times faster than one library call per element.
#pragma once

#include <cmath>

#include "kernels/cpu/simd/vec_math.h"
#include "kernels/elementwise/definition.h"

// Sines of large arguments. A GPU's own function of floats is less exact than the C library's.
#if defined(TN_GPU)
#define TN_LIBRARY(f)                                       \
  TN_INLINE static float library(float x) {                 \
    return static_cast<float>(::f(static_cast<double>(x))); \
  }
#else
#define TN_LIBRARY(f) \
  static float library(float x) { return std::f(x); }
#endif

namespace treenail::TN_SIDE::elementwise {
namespace {

#if defined(TN_GPU)
TN_INLINE double widen(float x) { return x; }
TN_INLINE float narrow(double x) { return static_cast<float>(x); }
#else
TN_INLINE VecD widen(HalfVecF x) { return __builtin_convertvector(x, VecD); }
TN_INLINE HalfVecF narrow(VecD x) { return __builtin_convertvector(x, HalfVecF); }
#endif
TN_INLINE VecD number(double x) { return splat<VecD>(x); }
inline constexpr double kInfinity = Limits<double>::kInfinity;
inline constexpr double kNaN = Limits<double>::kNaN;

// What rounding left of the product p = a * b. Without a fused multiply-add by halves, whose
// products are exact (Dekker, "A floating-point technique for extending the available precision",
// 1971).
TN_INLINE VecD product_rest(VecD a, VecD b, VecD p) {
#if defined(TN_FUSED)
  return mul_add(a, b, -p);
#else
  const VecL upper = ~(((VecL{} + 1) << 27) - 1);
  const VecD high_a = bits<VecD>(bits<VecL>(a) & upper), low_a = a - high_a;
  const VecD high_b = bits<VecD>(bits<VecL>(b) & upper), low_b = b - high_b;
  return ((high_a * high_b - p) + high_a * low_b + low_a * high_b) + low_a * low_b;
#endif
}

// `library` is used for elements that the rest does not cover: |x| above kMostRadians.
struct Limited {
  static constexpr bool kLimited = true;
};
struct Unlimited {
  static constexpr bool kLimited = false;
};

// Where |x| is small the first terms of the series are exact enough, and the closed form would
// cancel.
TN_INLINE VecD near_zero(VecD x, double below, VecD series, VecD closed) {
  return absolute(x) < number(below) ? series : closed;
}

struct Log1p : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD series = x - x * x * (number(0.5) - x * number(1.0 / 3));
    const VecD closed = log(number(1) + x);
    return near_zero(x, 1e-5, x == VecD{} ? x : series, closed);
  }
};
struct Sinh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD z = x * x;
    const VecD series = x + x * z * (number(1.0 / 6) + z * number(1.0 / 120));
    const VecD e = exp(x);
    return near_zero(x, 0.01, x == VecD{} ? x : series, number(0.5) * (e - number(1) / e));
  }
};
struct Cosh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD e = exp(absolute(x));
    return number(0.5) * (e + number(1) / e);
  }
};
struct Asinh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD a = absolute(x);
    const VecD closed = log(a + square_root(a * a + number(1)));
    return near_zero(x, 1e-4, x == VecD{} ? x : x - x * x * x * number(1.0 / 6),
                     copy_sign(closed, x));
  }
};
struct Acosh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD y = log(x + square_root((x - number(1)) * (x + number(1))));
    return x < number(1) ? number(kNaN) : y;
  }
};
struct Atanh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD closed = number(0.5) * log((number(1) + x) / (number(1) - x));
    return near_zero(x, 1e-4, x == VecD{} ? x : x + x * x * x * number(1.0 / 3), closed);
  }
};
struct Sin : Limited {
  TN_INLINE static VecD apply(VecD x) { return x == VecD{} ? x : sine_cosine(x).sine; }
  TN_LIBRARY(sin)
#if defined(TN_FUSED)
  TN_INLINE static VecF apply(VecF x) {
    const QuadrantF q = quadrant(x);
    const VecF y = (q.n & 1) != 0 ? q.cosine : q.sine;
    return x == VecF{} ? x : ((q.n & 2) != 0 ? -y : y);
  }
#endif
};
struct Cos : Limited {
  TN_INLINE static VecD apply(VecD x) { return sine_cosine(x).cosine; }
  TN_LIBRARY(cos)
#if defined(TN_FUSED)
  TN_INLINE static VecF apply(VecF x) {
    const QuadrantF q = quadrant(x);
    const VecF y = (q.n & 1) != 0 ? q.sine : q.cosine;
    return ((q.n + 1) & 2) != 0 ? -y : y;
  }
#endif
};
struct Tan : Limited {
  TN_INLINE static VecD apply(VecD x) {
    const SineCosine p = sine_cosine(x);
    return x == VecD{} ? x : p.sine / p.cosine;
  }
  TN_LIBRARY(tan)
};

// 2^52: from here on every double is a whole number, and every float an even one.
inline constexpr double kWhole = 4503599627370496.0;
TN_INLINE Mask<VecD> is_whole(VecD y) {
  const VecD a = absolute(y), magic = number(kWhole);
  return ((a + magic) - magic == a) | (a >= magic);
}
TN_INLINE Mask<VecD> is_odd(VecD y) { return is_whole(y) & unset(is_whole(y * number(0.5))); }

// |x|^y = e^(y log|x|), then the cases in which IEEE 754's pow departs from that.
TN_RARELY_CALLED VecD power_anywhere(VecD x, VecD y) {
  const VecD a = absolute(x), infinity = number(kInfinity);
  VecD r = exp(y * log(a));
  const auto one_to_infinity = (a == number(1)) & (y == y);
  r = one_to_infinity ? number(1) : r;
  const auto negative_power = (bits<VecL>(x) < 0) & is_odd(y);
  r = negative_power ? -r : r;
  const auto not_real =
      (x < VecD{}) & (a < infinity) & (absolute(y) < infinity) & unset(is_whole(y));
  r = not_real ? number(kNaN) : r;
  const auto always_one = (y == VecD{}) | (x == number(1));
  return always_one ? number(1) : r;
}
TN_INLINE VecD power(VecD x, VecD y) {
  const VecD t = y * log_normal(x);
  const Mask<VecD> plain =
      (x >= number(1e-300)) & (x < number(kInfinity)) & (absolute(t) <= number(kExpNormal<VecD>));
  return __builtin_expect(any(unset(plain)), 0) ? power_anywhere(x, y) : exp_normal(t);
}

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_THROUGH_DOUBLE_OPS(ROW) \
  ROW(Log1p, Log1p, float, 2.0f)   \
  ROW(Tan, Tan, float, 1.5f)       \
  ROW(Sinh, Sinh, float, 2.0f)     \
  ROW(Cosh, Cosh, float, 2.0f)     \
  ROW(Asinh, Asinh, float, 3.0f)   \
  ROW(Acosh, Acosh, float, 3.0f)   \
  ROW(Atanh, Atanh, float, 3.0f)
// In float where products are exact inside a sum (TN_FUSED).
#define TN_SINE_OPS(ROW)     \
  ROW(Sin, Sin, float, 1.0f) \
  ROW(Cos, Cos, float, 1.0f)
#define TN_POWER_OPS(ROW) ROW(Pow, Power, float, 4.0f)
