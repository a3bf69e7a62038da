// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete beta function of one element: the continued fraction of
// Abramowitz and Stegun 26.5.8 times a density that keeps its precision for large a and b, as in
// DiDonato and Morris, "Algorithm 708: Significant digit computation of the incomplete beta
// function ratios", ACM Trans. Math. Softw. 18 (1992).
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/host/special/gamma_parts.h"

namespace treenail::host {

// log gamma(a + b) - log gamma(b) for b >= 20, without the difference of large numbers.
template <class T>
T lgamma_difference(T a, T b) {
  const T c = a + b;
  return a * std::log(c) - a + (b - T(0.5)) * std::log1p(a / b) + stirling_rest(c) -
         stirling_rest(b);
}

// x^a y^b / beta(a, b), with y = 1 - x.
template <class T>
T beta_density(T a, T b, T x, T y) {
  constexpr T kTwoPi = T(6.28318530717958647692528676655900577L);
  if (a >= 20 && b >= 20) {
    const T c = a + b, left = b * x - a * y;  // of x beyond a / c, times c
    const T exponent = a * rest_of_log1p(left / a) + b * rest_of_log1p(-left / b);
    const T rest = stirling_rest(c) - stirling_rest(a) - stirling_rest(b);
    return std::sqrt(a / c * b / kTwoPi) * std::exp(rest - exponent);
  }
  const T log_y = y < T(0.5) ? std::log(y) : std::log1p(-x);
  const T log_x = x < T(0.5) ? std::log(x) : std::log1p(-y);
  const T least = std::fmin(a, b), most = std::fmax(a, b);
  const T scale = most < 20 ? lgamma_of(a + b) - lgamma_of(most) : lgamma_difference(least, most);
  return least * std::exp(a * log_x + b * log_y + (scale - lgamma_of(least + 1)));
}

// a I_x(a, b) over the density, from the front (after Lentz), for x <= (a + 1) / (a + b + 2).
template <class T>
T beta_fraction(T a, T b, T x) {
  T d = 1 / (1 - (a + b) * x / (a + 1)), c = 1, h = d;
  for (int k = 1; k < 100000; ++k) {
    const T m = static_cast<T>(k), at = a + 2 * m;
    const T even = m * (b - m) * x / ((at - 1) * at);
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    h *= c * d;
    const T odd = -(a + m) * (a + b + m) * x / (at * (at + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    const T factor = c * d;
    h *= factor;
    if (is_negligible(factor - 1)) break;
  }
  return h;
}

// a > 0, b > 0 and 0 < x < 1.
template <class T>
T incomplete_beta(T a, T b, T x) {
  T y = 1 - x;
  const bool swap = x > (a + 1) / (a + b + 2);
  if (swap) std::swap(a, b), std::swap(x, y);
  const T part = beta_density(a, b, x, y) * beta_fraction(a, b, x) / a;
  return swap ? 1 - part : part;
}

}  // namespace treenail::host
