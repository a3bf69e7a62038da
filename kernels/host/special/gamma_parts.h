// SPDX-License-Identifier: Apache-2.0
// What the incomplete gamma and beta functions have in common: Stirling's series, and the logarithm
// less its first term, for numbers N that may carry a derivative (dual.h).
#pragma once

#include <cmath>
#include <limits>

#include "kernels/host/special/dual.h"
#include "kernels/host/special/zeta.h"

namespace treenail::host {

// For a > 0.
template <class T>
T polygamma_above(int n, T a) {
  return polygamma(static_cast<T>(n), a);
}
template <class T>
Dual<T> polygamma_above(int n, Dual<T> a) {
  return {polygamma_above(n, a.value), polygamma_above(n + 1, a.value) * a.slope};
}
template <class T>
T lgamma_above(T a) {
  return lgamma_of(a);
}
template <class T>
Dual<T> lgamma_above(Dual<T> a) {
  return {lgamma_above(a.value), polygamma_above(0, a.value) * a.slope};
}

// log gamma(a) less (a - 1/2) log a - a + log(2 pi) / 2, for a >= 20 (Abramowitz and Stegun
// 6.1.40).
template <class N>
N stirling_rest(N a) {
  using T = decltype(value_of(a));
  static constexpr T kSeries[] = {T(1) / 12,    T(-1) / 360,          T(1) / 1260,
                                  T(-1) / 1680, T(1) / 1188,          T(-691) / T(360360),
                                  T(1) / 156,   T(-3617) / T(122400), T(43867) / T(244188)};
  const N u = N(1) / (a * a);
  N sum(0);
  for (int k = 8; k >= 0; --k) sum = sum * u + N(kSeries[k]);
  return sum / a;
}

// (x - log(1 + x)) / x² for |x| <= 1/2: with s = x / (2 + x), log(1 + x) = 2 s + 2 s³/3 + …
template <class N>
N scaled_rest_of_log1p(N x) {
  using T = decltype(value_of(x));
  const N inverse = N(1) / (N(2) + x), s = x * inverse, u = s * s;
  N sum(0), power(1);
  for (int k = 3; k < 101; k += 2) {
    const N term = power * N(T(1) / static_cast<T>(k));
    sum = sum + term;
    if (size_of(term) < std::numeric_limits<T>::epsilon() / 64) break;
    power = power * u;
  }
  return inverse - N(2) * x * inverse * inverse * inverse * sum;
}
// x - log(1 + x), for x > -1.
template <class N>
N rest_of_log1p(N x) {
  if (std::fabs(value_of(x)) <= 0.5) return x * x * scaled_rest_of_log1p(x);
  return x - logarithm(N(1) + x);
}

}  // namespace treenail::host
