// SPDX-License-Identifier: Apache-2.0
// Norms by which functions of matrices choose their approximants: the largest sum of absolute
// values in a column (column-major).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>

namespace treenail::host {

template <class W>
double one_norm(int64_t n, const W* a) {
  double largest = 0;
  for (int64_t k = 0; k < n; ++k) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(a[k * n + i]);
    if (!(sum <= largest)) largest = sum;  // NaN stays
  }
  return largest;
}

// The largest absolute value of a real or imaginary part.
template <class W>
double largest_part(int64_t count, const W* a) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max({largest, std::abs(std::real(a[i])), std::abs(std::imag(a[i]))});
  }
  return largest;
}

// The logarithm to base 2 of the norm of |a|^(p + 1) over that of |a|, here of the largest sum in a
// row: as all elements are positive, these are the largest elements of |a|^(p + 1) and |a| times
// ones. -infinity: the power is zero. `scratch` is memory for n * n numbers, `vectors` for 2n.
template <class W>
double growth_of_powers(int64_t n, const W* a, int p, W* scratch, double* vectors) {
  auto* const sizes = reinterpret_cast<double*>(scratch);
  for (int64_t i = 0; i < n * n; ++i) sizes[i] = std::abs(a[i]);
  double *sums = vectors, *next = vectors + n, growth = 0;
  std::fill(sums, sums + n, 1.0);
  for (int i = 0; i <= p; ++i) {
    std::fill(next, next + n, 0.0);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < n; ++j) next[j] += sizes[k * n + j] * sums[k];
    }
    std::swap(sums, next);
    const double largest = *std::max_element(sums, sums + n);
    if (i > 0) growth += std::log2(largest);
    if (largest == 0) return growth;
    for (int64_t j = 0; j < n; ++j) sums[j] /= largest;
  }
  return growth;
}

}  // namespace treenail::host
