// SPDX-License-Identifier: Apache-2.0
// Diagonal Pade approximants of the exponential, and what it is of triangles of two rows.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>

namespace treenail::host {

// A degree of the approximant and the norm up to which its backward error is below the unit
// roundoff (Higham 2005, table 2.3).
struct Degree {
  int m;
  double most;
};
inline constexpr Degree kDegrees[] = {{3, 1.495585217958292e-2},
                                      {5, 2.539398330063230e-1},
                                      {7, 9.504178996162932e-1},
                                      {9, 2.097847961257068},
                                      {13, 4.25}};

// Coefficients of the numerator, the last one 1: b[j] / b[j + 1] = (2m - j) (j + 1) / (m - j).
inline std::array<double, 14> pade_coefficients(int m) {
  std::array<double, 14> b{};
  b[static_cast<size_t>(m)] = 1;
  for (int j = m - 1; j >= 0; --j) {
    b[static_cast<size_t>(j)] = b[static_cast<size_t>(j) + 1] * (2 * m - j) * (j + 1) / (m - j);
  }
  return b;
}

// 1 / ((2m)! (2m + 1)! / (m!)^2), the first coefficient of the backward error.
inline double error_coefficient(int m) {
  double c = 1.0 / (2 * m + 1);
  for (int k = 1; k <= 2 * m; ++k) c /= k;
  for (int k = 1; k <= m; ++k) c *= static_cast<double>(k) / (m + k);
  return c;
}

// (e^b - e^a) / (b - a).
template <class W>
W exp_difference(W a, W b) {
  const W half = (b - a) / 2.0;
  if (half == W(0)) return std::exp(a);
  if (std::abs(half) > 1) return (std::exp(b) - std::exp(a)) / (b - a);
  return std::exp((a + b) / 2.0) * (std::sinh(half) / half);
}

// The element above the diagonal of the exponential of [a, above; 0, b].
template <class W>
W exp_above(W a, W above, W b) {
  return above == W(0) ? above : above * exp_difference(a, b);  // zero times infinity would be NaN
}

}  // namespace treenail::host
