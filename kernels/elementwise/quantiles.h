// SPDX-License-Identifier: Apache-2.0
// Inverses of the error function and of the normal distribution, in double. As in Wichura,
// "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37
// (1988): a rational function in the middle, and two of r = sqrt(-log p) where the tail p is small.
// The coefficients are minimax fits made for this file.
#pragma once

#include "kernels/elementwise/through_double.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

// erfinv(x) for |x| <= 0.85: sqrt(pi)/2 x, and what is left by powers of 0.85² - x², whose
// coefficients are positive.
TN_INLINE VecD erfinv_middle(VecD x) {
  constexpr double kHalfRootPi = 0.88622692545275801365;
  constexpr double kP[] = {0.43087250673264127, 4.1485807360781175,   14.965396557249436,
                           25.169467487521597,  20.009001500055035,   6.734680470714645,
                           0.69202837488706181, 0.0025470962783044559};
  constexpr double kQ[] = {1.0,
                           11.134404937705041,
                           48.283305717709112,
                           103.35930196116558,
                           114.4342811657153,
                           62.80449790090379,
                           14.863952651481585,
                           1.0577508203285002};  // 2^-53 of the rest
  const VecD u = x * x, v = number(0.7225) - u;
  return x * mul_add(u, polynomial(v, kP) / polynomial(v, kQ), number(kHalfRootPi));
}

// The number beyond which a standard normal variable lies with probability p, p in (0, 0.075]: a
// multiple of r, and what is left.
TN_INLINE VecD quantile_of_tail(VecD p) {
  constexpr double kNearP[] = {
      -0.37656288925031645,  -0.19043102483247609,   0.44215670775149563,
      0.52036534842659099,   0.22790911799474869,    0.047813588677725866,
      0.0046404844251647049, 0.00015852645097508104, -1.1820685399313934e-9};
  constexpr double kNearQ[] = {1.0,
                               2.0532552097515997,
                               1.6765024529989832,
                               0.68984583183030823,
                               0.14812666641638997,
                               0.015201319217992455,
                               0.00054768493459797572,
                               1.0507275910501275e-9};  // 2^-55, r in [1.6, 5]
  constexpr double kFarP[] = {
      -0.21709535649889611,  -0.034888667575080017,  0.018680004077705793,
      0.0059983514537130262, 0.00066513974745330371, 3.3474159065442416e-5,
      7.4105408225619323e-7, 5.4633451793950243e-9,  -2.6553129953525502e-15};
  constexpr double kFarQ[] = {1.0,
                              0.59903605257393155,
                              0.13650867911562103,
                              0.014794112674166839,
                              0.00077994346341788974,
                              1.821355253956899e-5,
                              1.3929092878300952e-7,
                              1.9311367238927638e-15};  // 2^-54, r in [5, 28]
  const VecD r = square_root(-log(p));
  const VecD near = r - number(1.6);
  VecD y = mul_add(number(1.125), r, polynomial(near, kNearP) / polynomial(near, kNearQ));
  const auto is_far = r > number(5);
  if (any(is_far)) {
    const VecD far = r - number(5);
    const VecD rest = polynomial(far, kFarP) / polynomial(far, kFarQ);
    y = is_far ? mul_add(number(1.375), r, rest) : y;
  }
  return p == VecD{} ? number(kInfinity) : y;
}

inline constexpr double kRootTwo = 1.41421356237309504880;
inline constexpr double kOneByRootTwo = 0.70710678118654752440;

struct Quantile : Unlimited {
  static constexpr Tail kTail = Tail::kPadded;
  static constexpr bool kIsLong = true;
};
struct Erfinv : Quantile {
  TN_INLINE static VecD apply(VecD x) {
    VecD y = erfinv_middle(x);
    const VecD a = absolute(x);
    const auto outside = unset(a <= number(0.85));
    if (any(outside)) {
      const VecD tail = quantile_of_tail(number(0.5) * (number(1) - a)) * number(kOneByRootTwo);
      y = outside ? copy_sign(tail, x) : y;
      y = unset(a <= number(1)) ? number(kNaN) : y;
    }
    return y;
  }
};
struct Ndtri : Quantile {
  TN_INLINE static VecD apply(VecD p) {
    const VecD q = p - number(0.5);
    VecD y = erfinv_middle(q + q) * number(kRootTwo);
    const auto outside = unset(absolute(q) <= number(0.425));
    if (any(outside)) {
      const VecD tail = quantile_of_tail(q < VecD{} ? p : number(1) - p);
      y = outside ? copy_sign(tail, q) : y;
      y = unset((p >= VecD{}) & (p <= number(1))) ? number(kNaN) : y;
    }
    return y;
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_QUANTILE_THROUGH_DOUBLE_OPS(ROW) \
  ROW(Erfinv, Erfinv, float, 3.0f)          \
  ROW(Ndtri, Ndtri, float, 3.0f)
#define TN_QUANTILE_OPS(ROW)        \
  ROW(Erfinv, Erfinv, double, 3.0f) \
  ROW(Ndtri, Ndtri, double, 3.0f)
