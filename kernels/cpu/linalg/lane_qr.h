// SPDX-License-Identifier: Apache-2.0
// QR factors of small matrices, one per vector lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/linalg/lane_householder.h"

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

  // Leaves nothing below the diagonal of column j; the reflection's vector takes its place.
  void reflect(int64_t j) {
    L* const column = a + j * n + j;
    const Reflection<T> reflection(column, n, m - j);
    tau_[j] = reflection.tau;
    apply(j, conjugate(tau_[j]), j + 1, n, a);
    *column = reflection.first;
  }

  // In columns [begin, width) of x.
  void apply(int64_t j, L tau, int64_t begin, int64_t width, L* x) const {
    for (int64_t c = begin; c < width; ++c) {
      reflect_column(a + j * n + j, n, m - j, tau, x + j * width + c, width);
    }
  }
};

}  // namespace treenail::cpu
