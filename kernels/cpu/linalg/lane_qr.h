// SPDX-License-Identifier: Apache-2.0
// Householder's reflections on small matrices, one per vector lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

template <class T>
struct LaneQr {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  L a[kMostLaneRows * kMostLaneRows];  // m x n, row by row
  L q[kMostLaneRows * kMostLaneRows];  // m x columns
  int64_t m, n, columns;

  LaneQr(int64_t rows, int64_t cols, int64_t of_q) : m(rows), n(cols), columns(of_q) {}

  // a becomes R, whose diagonal is real, and q the first columns of Q. (Golub and Van Loan, Matrix
  // Computations, 5.2.2; of complex numbers as LAPACK's geqr2.)
  void factor() {
    const int64_t reflections = std::min(m, n);
    for (int64_t j = 0; j < reflections; ++j) reflect(j);
    set_identity<T>(q, m, columns);
    for (int64_t j = reflections - 1; j >= 0; --j) apply(j, tau_[j], j, columns, q);
    for (int64_t i = 1; i < m; ++i) {
      for (int64_t c = 0; c < std::min(i, n); ++c) a[i * n + c] = L{};
    }
  }

 private:
  L tau_[kMostLaneRows];

  // The reflection that leaves nothing below the diagonal of column j; its vector takes the place
  // of what was there. Divided by the largest element first, so that squares stay in range.
  void reflect(int64_t j) {
    R largest = largest_part(a[j * n + j]), rest = R{};
    for (int64_t i = j + 1; i < m; ++i) largest = greater_of(largest_part(a[i * n + j]), largest);
    const R unit = largest == R{} ? splat<R>(1) : largest;
    for (int64_t i = j + 1; i < m; ++i) {
      const L x = a[i * n + j] / unit;
      a[i * n + j] = x;
      rest = add_square(x, rest);
    }
    const L first = a[j * n + j] / unit;
    const R norm = square_root(add_square(first, rest));
    const R other = -copy_sign(norm, real_part(first));
    const auto nothing = (rest == R{}) & is_real(first);
    tau_[j] = choose(nothing, L{}, (from_real<T>(other) - first) / other);
    const L scale = choose(nothing, L{}, reciprocal(first - from_real<T>(other)));
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] = times(a[i * n + j], scale);
    if (j + 1 < n) apply(j, conjugate(tau_[j]), j + 1, n, a);
    a[j * n + j] = from_real<T>((nothing ? real_part(first) : other) * unit);
  }

  // x minus tau v v^H x, in columns [begin, width).
  void apply(int64_t j, L tau, int64_t begin, int64_t width, L* x) const {
    for (int64_t c = begin; c < width; ++c) {
      L sum = x[j * width + c];
      for (int64_t i = j + 1; i < m; ++i) {
        sum = mul_add(conjugate(a[i * n + j]), x[i * width + c], sum);
      }
      sum = times(sum, tau);
      x[j * width + c] = x[j * width + c] - sum;
      for (int64_t i = j + 1; i < m; ++i) {
        x[i * width + c] = mul_add(-a[i * n + j], sum, x[i * width + c]);
      }
    }
  }
};

}  // namespace treenail::cpu
