// SPDX-License-Identifier: Apache-2.0
// Solutions by LU factors. Read as column-major a row-major matrix is its transpose, so that A X =
// B is X^T A^T = B^T.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/adapters/lapack/lapack_api.h"

namespace treenail::host {

template <class W>
bool has_zero_pivot(const W* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * (n + 1)] == W(0)) return true;
  }
  return false;
}

template <class W>
void exchange_rows(W* x, int64_t k, int64_t i, int64_t pivot) {
  if (pivot != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + pivot * k);
}

// With A^T = P L U: X^T = B^T U^-1 L^-1 P^T, and for A^H X = B: X^T = B^T P L^-H U^-H.
template <class W>
void solve_by_factors(const DenseRoutines<W>& table, bool adjoint, int64_t n, int64_t k,
                      const W* factors, const int32_t* pivots, W* x) {
  if (adjoint) {
    for (int64_t i = 0; i < n; ++i) exchange_rows(x, k, i, pivots[i]);
    table.solve_right(false, true, true, k, n, factors, x);
    table.solve_right(true, true, false, k, n, factors, x);
  } else {
    table.solve_right(true, false, false, k, n, factors, x);
    table.solve_right(false, false, true, k, n, factors, x);
    for (int64_t i = n - 1; i >= 0; --i) exchange_rows(x, k, i, pivots[i]);
  }
}

}  // namespace treenail::host
