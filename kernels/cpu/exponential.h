// SPDX-License-Identifier: Apache-2.0
// exp of a vector of numbers that are zero or negative, as softmax needs it: no overflow to mind,
// results below the smallest normal number are zero, NaN stays NaN. Range reduction by ln 2 in two
// parts, then a polynomial: within 1.1 units in the last place (float: Cephes' coefficients,
// double: Taylor's up to degree 13).
#pragma once

#include <cstdint>

#include "kernels/cpu/vec_fma.h"

namespace treenail::cpu {

TN_INLINE VecF exp_of_negative(VecF x) {
  constexpr float kMagic =
      12582912.0F;  // 1.5 * 2^23: adding it leaves the rounded integer in the low bits
  const VecF shifted = mul_add(x, splat<VecF>(1.44269504088896341F), splat<VecF>(kMagic));
  const VecF n = shifted - kMagic;
  VecF f = mul_add(n, splat<VecF>(-0.693359375F), x);
  f = mul_add(n, splat<VecF>(2.12194440e-4F), f);
  VecF p = splat<VecF>(1.9875691500e-4F);
  p = mul_add(p, f, splat<VecF>(1.3981999507e-3F));
  p = mul_add(p, f, splat<VecF>(8.3334519073e-3F));
  p = mul_add(p, f, splat<VecF>(4.1665795894e-2F));
  p = mul_add(p, f, splat<VecF>(1.6666665459e-1F));
  p = mul_add(p, f, splat<VecF>(5.0000001201e-1F));
  p = mul_add(p, f * f, f) + 1.0F;
  const VecF scaled = bits<VecF>((VecI)(bits<VecI>(p) + (bits<VecI>(shifted) << 23)));
  const VecF positive = x < -87.3365478515625F ? VecF{} : scaled;
  return x <= 0.0F ? positive : x + 1.0F;  // NaN falls through to here
}

TN_INLINE VecD exp_of_negative(VecD x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  const VecD shifted = mul_add(x, splat<VecD>(1.4426950408889634074), splat<VecD>(kMagic));
  const VecD n = shifted - kMagic;
  VecD f = mul_add(n, splat<VecD>(-6.93147180369123816490e-01), x);
  f = mul_add(n, splat<VecD>(-1.90821492927058770002e-10), f);
  VecD p = splat<VecD>(1.0 / 6227020800.0);
  constexpr double kCoefficients[] = {1.0 / 479001600.0,
                                      1.0 / 39916800.0,
                                      1.0 / 3628800.0,
                                      1.0 / 362880.0,
                                      1.0 / 40320.0,
                                      1.0 / 5040.0,
                                      1.0 / 720.0,
                                      1.0 / 120.0,
                                      1.0 / 24.0,
                                      1.0 / 6.0,
                                      0.5};
  for (const double c : kCoefficients) p = mul_add(p, f, splat<VecD>(c));
  p = mul_add(p, f * f, f) + 1.0;
  const VecD scaled = bits<VecD>((VecL)(bits<VecL>(p) + (bits<VecL>(shifted) << 52)));
  const VecD positive = x < -708.396418532264 ? VecD{} : scaled;
  return x <= 0.0 ? positive : x + 1.0;
}

}  // namespace treenail::cpu
