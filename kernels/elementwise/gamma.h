// SPDX-License-Identifier: Apache-2.0
// Logarithm of the gamma function and its derivative, the digamma function, in double. Both
// are brought to the right of 1 by one step of the recurrence, or by reflection for x < 0
// (Abramowitz and Stegun 6.1.17, 6.3.7). From there Lgamma is a rational function times the factors
// that are zero, and Stirling's series from 8 on; Digamma, moved beyond 2, is a logarithm and what
// is left of it, a small rational function. All are minimax fits made for this file, their errors
// stand beside. Lgamma of doubles is the C library's: host/elementwise/libm.cc.
#pragma once

#include "kernels/elementwise/through_double.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

inline constexpr double kStirling = 8;  // from here on by Stirling's series

// The distance of |x| from the nearest whole number; from 2^52 on all doubles are whole.
TN_INLINE VecD from_whole(VecD x) {
  const VecD a = absolute(x), magic = number(4503599627370496.0);
  return a < magic ? a - ((a + magic) - magic) : VecD{};
}
// A number and what its rounding left.
struct Pair {
  VecD high;
  VecD low;
};
TN_INLINE Pair sum(VecD large, VecD small) {
  const VecD high = large + small;
  return {high, small - (high - large)};
}

// sin(pi r) / pi for |r| <= 1/2.
TN_INLINE Pair sine_over_pi(VecD r) {
  constexpr double kS[] = {-1.6449340668482264,    0.81174242528334006,    -0.19075182412149974,
                           0.026147847805439221,   -0.0023460808936069883, 0.00014842782971656593,
                           -6.9720656400743149e-6, 2.449914757147286e-7};  // 2^-61
  const VecD u = r * r;
  return sum(r, r * u * polynomial(u, kS));
}
// cos(pi r).
TN_INLINE Pair cosine_of_pi_times(VecD r) {
  constexpr double kC[] = {
      -4.934802200544679,      4.0587121264167685,    -1.3352627688545819,
      0.23533063035858762,     -0.025806891383797353, 0.001929574238214479,
      -0.00010463762514709759, 4.3011811676229017e-6, -1.3476806165347381e-7};  // 2^-65
  const VecD u = r * r;
  return sum(number(1), u * polynomial(u, kC));
}
// above / below, rounded but for some tenths of a unit in the last place of the whole.
TN_INLINE Pair quotient(Pair above, Pair below) {
  const VecD q = above.high / below.high, p = q * below.high;
  const VecD rest = (above.high - p) - product_rest(q, below.high, p);
  return {q, (rest + above.low - q * below.low) / below.high};
}
// pi cot(pi r) for |r| <= 1/2: towards 1/2 by the tangent of the angle's complement.
TN_INLINE Pair pi_cotangent(VecD r) {
  constexpr double kPiSquared = 9.8696044010893586188, kRest = 0x1.692b71366cc04p-51;
  const VecD a = absolute(r);
  const auto small = a <= number(0.25);
  const VecD angle = small ? a : number(0.5) - a;
  const Pair sine = sine_over_pi(angle), cosine = cosine_of_pi_times(angle);
  const VecD t = number(kPiSquared) * sine.high;
  const VecD t_low = product_rest(sine.high, number(kPiSquared), t) +
                     (number(kRest) * sine.high + number(kPiSquared) * sine.low);
  const Pair above = {small ? cosine.high : t, small ? cosine.low : t_low};
  const Pair below = {small ? sine.high : cosine.high, small ? sine.low : cosine.low};
  const Pair size = quotient(above, below);
  return {r < VecD{} ? -size.high : size.high, r < VecD{} ? -size.low : size.low};
}

// log gamma(z) for z >= 1, where log_z is the logarithm of z.
TN_INLINE VecD lgamma_low(VecD z) {
  constexpr double kP[] = {2.4553691557322592,  53.725582359001308,  258.57552561415389,
                           429.79184760240963,  287.48016849253037,  81.732427306163459,
                           9.681345806614214,   0.42742813734566071, 0.0051584010711024034,
                           3.347953721907496e-6};
  constexpr double kQ[] = {1.0,
                           37.838284874294011,
                           274.7530352648771,
                           659.89541692138516,
                           640.98347731541878,
                           275.02982410066141,
                           53.038827029138623,
                           4.3870540411287982,
                           0.13530264854594706,
                           0.0010710891534297881};  // 2^-54
  return (z - number(1)) * (z - number(2)) * (polynomial(z, kP) / polynomial(z, kQ));
}
TN_INLINE VecD lgamma_series(VecD z, VecD log_z) {
  constexpr double kP[] = {0.083333333333333329,    -0.0027777777777740864, 0.00079365078982662047,
                           -0.00059523660489584432, 0.00084147261283030225, -0.0018905272512664962,
                           0.00506899069800086};  // 2^-57
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const VecD inverse = number(1) / z;
  const VecD tail = mul_add(inverse, polynomial(inverse * inverse, kP), number(kHalfLogTwoPi));
  return mul_add(z - number(0.5), log_z, tail - z);
}

struct Lgamma : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const auto negative = x < VecD{}, below_one = x < number(1);
    VecD z = negative ? number(1) - x : x, argument = z;
    if (any(below_one)) {
      const VecD sine = negative ? sine_over_pi(from_whole(x)).high : x;
      argument = below_one ? absolute(sine) : z;
      z = (x >= VecD{}) & below_one ? number(1) + x : z;
    }
    const VecD logarithm = log(argument);
    VecD y = lgamma_low(z);
    if (any(z >= number(kStirling))) {
      const Mask<VecD> far_left = negative & (z >= number(kStirling));
      VecD log_z = logarithm;
      if (any(far_left)) log_z = far_left ? log(z) : log_z;
      y = z < number(kStirling) ? y : lgamma_series(z, log_z);
    }
    const VecD reflected = negative ? -y : y;
    const VecD result = below_one ? reflected - logarithm : y;
    return absolute(x) == number(kInfinity) ? number(kInfinity) : result;
  }
};

// The derivative of log gamma at z >= 2, by powers of (z - 1/2)^-2.
TN_INLINE VecD digamma_high(VecD z) {
  constexpr double kP[] = {0.041666666666666526, 0.68666606831158916, 3.5972967778719593,
                           7.3026853715504565,   5.5634568275531233,  1.249186354157543,
                           0.0291072841819809};
  constexpr double kQ[] = {1.0,
                           16.654985639472571,
                           89.157483252552964,
                           189.42960638258236,
                           159.91833827251656,
                           46.818538659093939,
                           3.1892536185426779};  // 2^-48
  const VecD w = z - number(0.5), u = number(1) / (w * w);
  return log(w) + u * (polynomial(u, kP) / polynomial(u, kQ));
}

struct Digamma : Unlimited {
  static constexpr Tail kTail = Tail::kPadded;
  static constexpr bool kIsLong = true;
  TN_INLINE static VecD apply(VecD x) {
    const auto positive = x > VecD{}, below_one = x < number(1);
    const VecD first = (below_one ? number(1) : VecD{}) + absolute(x);
    const auto again = first < number(2);
    VecD y = digamma_high(again ? first + number(1) : first);
    if (any(again)) y = again ? y - number(1) / first : y;
    if (any(below_one)) {
      const VecD r = from_whole(x);
      const Pair cotangent = pi_cotangent(r);
      const VecD left = y + cotangent.high;
      const VecD part = left - y;  // of what was added, as Knuth's sum of two
      const VecD rest = (y - (left - part)) + (cotangent.high - part);
      const VecD reflected = left + (rest + cotangent.low);
      y = below_one ? (positive ? y - number(1) / x : reflected) : y;
      y = below_one & unset(positive) & (r == VecD{}) ? number(kInfinity) : y;  // a pole
    }
    return y;
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_GAMMA_THROUGH_DOUBLE_OPS(ROW) \
  ROW(Lgamma, Lgamma, float, 3.0f)       \
  ROW(Digamma, Digamma, float, 3.0f)
#define TN_GAMMA_OPS(ROW) ROW(Digamma, Digamma, double, 3.0f)
