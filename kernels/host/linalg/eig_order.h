// SPDX-License-Identifier: Apache-2.0
// The order of the eigenvalues of a general matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace treenail::host {

// The order by real part, then by imaginary part; real parts that only rounding tells apart (of a
// skew-Hermitian matrix all) count as equal.
template <class Z>
void sort_values(int64_t n, const Z* values, int64_t* order) {
  using R = typename Z::value_type;
  std::iota(order, order + n, int64_t{0});
  R largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
  const R alike = 16 * std::numeric_limits<R>::epsilon() * largest;
  const auto by_real = [&](int64_t a, int64_t b) { return values[a].real() < values[b].real(); };
  const auto by_imag = [&](int64_t a, int64_t b) { return values[a].imag() < values[b].imag(); };
  std::stable_sort(order, order + n, by_real);
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    for (end = begin + 1; end < n; ++end) {
      if (values[order[end]].real() - values[order[end - 1]].real() > alike) break;
    }
    std::stable_sort(order + begin, order + end, by_imag);
  }
}

}  // namespace treenail::host
