// SPDX-License-Identifier: Apache-2.0
// Powers of two that bring a matrix near 1, so that what a decomposition multiplies stays in range.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

namespace treenail::eigen {

inline double scaled(double x, int exponent) { return std::ldexp(x, exponent); }
inline std::complex<double> scaled(const std::complex<double>& x, int exponent) {
  return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
}

// The exponent of the largest part of an element; 0 where all are 0.
template <class T>
int exponent_of(int64_t count, const T* x) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max({largest, std::abs(std::real(x[i])), std::abs(std::imag(x[i]))});
  }
  return largest == 0 ? 0 : std::ilogb(largest);
}

template <class T>
void scale(int64_t count, int exponent, T* x) {
  if (exponent == 0) return;
  for (int64_t i = 0; i < count; ++i) x[i] = scaled(x[i], exponent);
}

}  // namespace treenail::eigen
