// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of orders 0 and 1 times e^-|x|, in double: below 8 their power
// series in x²/4, shortened to a minimax polynomial with positive coefficients, above polynomials
// in 1/x of the asymptotic form (Abramowitz and Stegun 9.6.10, 9.7.1). The fits were made for this
// file.
#pragma once

#include "kernels/elementwise/through_double.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

inline constexpr double kSeries = 8;  // below here by powers of x²/4

// From kSeries to 16 by powers of 1/x - kCentre.
inline constexpr double kCentre = 3.0 / 32;

// The series grows by as much as a²/4 to the power of L = a²/2 / (n + 1/2 + sqrt(a² + (n + 3/2)²))
// does, to a few per cent (a bound of Amos, "Computation of modified Bessel functions and their
// ratios", 1974): that makes good the rounding of a².
TN_INLINE VecD series_correction(VecD a, VecD square, double order) {
  const VecD bound =
      number(order + 0.5) + square_root(square + number((order + 1.5) * (order + 1.5)));
  return number(1) + number(0.5) * product_rest(a, a, square) / bound;
}

template <int kN, int kM, int kL>
TN_INLINE VecD scaled(VecD a, double order, const double (&near)[kN], const double (&middle)[kM],
                      const double (&far)[kL]) {
  const VecD square = a * a, u = number(0.25) * square;
  const VecD series = mul_add(u, polynomial(u, near), number(1));
  VecD y = exp_of_negative(-a) * series * series_correction(a, square, order);
  y = order == 0 ? y : number(0.5) * a * y;
  const auto beyond = a >= number(kSeries);
  if (any(beyond)) {
    const VecD t = number(1) / a;
    const VecD inner = polynomial(t - number(kCentre), middle), outer = polynomial(t, far);
    y = beyond ? (a < number(16) ? inner : outer) / square_root(a) : y;
  }
  return y;
}

struct Bessel : Unlimited {
  static constexpr Tail kTail = Tail::kPadded;
  static constexpr bool kIsLong = true;
};
struct BesselI0e : Bessel {
  TN_INLINE static VecD apply(VecD x) {
    // 1 + c[0] u + c[1] u² + …, u = x²/4.
    static constexpr double kI0Near[] = {1.0,
                                         0.24999999999999969,
                                         0.027777777777778744,
                                         0.0017361111111096005,
                                         6.944444444579574e-5,
                                         1.9290123449165688e-6,
                                         3.936759917931714e-8,
                                         6.1511865710666022e-10,
                                         7.5940725410490398e-12,
                                         7.5938687250816702e-14,
                                         6.2779180552701575e-16,
                                         4.3457291898292538e-18,
                                         2.6392904969552208e-20,
                                         1.1281520935791664e-22,
                                         9.1904054819383613e-25};  // 2^-60
    // Over sqrt(x), by powers of 1/x - kCentre from 8 to 16.
    static constexpr double kI0Middle[] = {
        0.40389233614682268,  0.056095719280591538, 0.039845385066091303,
        0.062238968110493599, 0.18367424972036486,  0.88714735663987931,
        3.7681772722065485,   -19.106790783623662,  -510.21891739581366,
        -1527.9543528995998,  41019.258795901245,   197337.17861016071,
        -3831172.7497864109,  -11780927.69165721,   299365068.14901787,
        43319356.812181309};  // 2^-59
    // And of 1/x beyond.
    static constexpr double kI0Far[] = {
        0.3989422804014327,  0.04986778505015757,  0.02805062910926194, 0.029219399043222127,
        0.04474330796931849, 0.090489998668636884, 0.23582004894116718, 0.36652377553199089,
        11.8433097528155,    -173.56638696855444,  2336.3095133663255,  -16611.925970190725,
        57767.056410728968};  // 2^-56
    return scaled(absolute(x), 0, kI0Near, kI0Middle, kI0Far);
  }
};
struct BesselI1e : Bessel {
  TN_INLINE static VecD apply(VecD x) {
    // 1 + c[0] u + c[1] u² + …, u = x²/4.
    static constexpr double kI1Near[] = {
        0.49999999999999972,    0.083333333333335258,   0.0069444444444395114,
        0.00034722222222843087, 1.1574074069563501e-5,  2.7557319431284576e-7,
        4.9209492242729519e-9,  6.8346661350471275e-11, 7.5938553201010901e-13,
        6.9058472606030807e-15, 5.2139549425995977e-17, 3.4349686000121098e-19,
        1.5699730402601641e-21, 1.3885794663338704e-23};  // 2^-56
    // Over sqrt(x), by powers of 1/x - kCentre from 8 to 16.
    static constexpr double kI1Middle[] = {
        0.38446685410720083,   -0.15969829015857495, -0.062749032221286027,
        -0.081758663517764743, -0.21951352872623647, -1.011385806309846,
        -4.3514197784404702,   18.252934948465864,   543.09172585884426,
        1840.4531468634932,    -42216.274674107095,  -226083.09886042177,
        3916263.8935366082,    14119247.126413135,   -307779869.98329437,
        -174778281.53912133};  // 2^-59
    // And of 1/x beyond.
    static constexpr double kI1Far[] = {
        0.39894228040143265,   -0.14960335515051409, -0.04675104850444934, -0.040907160714498181,
        -0.057526874398122416, -0.11061626236202085, -0.27784393650791889, -0.45135055304001587,
        -12.774990152499623,   184.08574666157523,   -2484.9882827552024,  17639.670848019286,
        -61396.498152381915};  // 2^-56
    return copy_sign(scaled(absolute(x), 1, kI1Near, kI1Middle, kI1Far), x);
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_BESSEL_THROUGH_DOUBLE_OPS(ROW) \
  ROW(BesselI0e, BesselI0e, float, 3.0f)  \
  ROW(BesselI1e, BesselI1e, float, 3.0f)
#define TN_BESSEL_OPS(ROW)                \
  ROW(BesselI0e, BesselI0e, double, 3.0f) \
  ROW(BesselI1e, BesselI1e, double, 3.0f)
