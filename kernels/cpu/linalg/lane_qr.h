// SPDX-License-Identifier: Apache-2.0
// Householder's reflections on small matrices, one per vector lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

template <class T>
struct LaneQr {
  Vec<T> a[kMostLaneRows * kMostLaneRows];  // m x n, row by row
  Vec<T> q[kMostLaneRows * kMostLaneRows];  // m x columns
  int64_t m, n, columns;

  LaneQr(int64_t rows, int64_t cols, int64_t of_q) : m(rows), n(cols), columns(of_q) {}

  // a becomes R, q the first columns of Q. (Golub and Van Loan, Matrix Computations, 5.2.2.)
  void factor() {
    const int64_t reflections = std::min(m, n);
    for (int64_t j = 0; j < reflections; ++j) reflect(j);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t c = 0; c < columns; ++c) q[i * columns + c] = splat<Vec<T>>(i == c ? 1 : 0);
    }
    for (int64_t j = reflections - 1; j >= 0; --j) apply(j, j, columns, q);
    for (int64_t i = 1; i < m; ++i) {
      for (int64_t c = 0; c < std::min(i, n); ++c) a[i * n + c] = Vec<T>{};
    }
  }

 private:
  Vec<T> tau_[kMostLaneRows];

  // The reflection that leaves nothing below the diagonal of column j; its vector takes the place
  // of what was there. Divided by the largest element first, so that squares stay in range.
  void reflect(int64_t j) {
    Vec<T> largest = absolute(a[j * n + j]), rest = Vec<T>{};
    for (int64_t i = j + 1; i < m; ++i) largest = greater_of(absolute(a[i * n + j]), largest);
    const Vec<T> unit = largest == Vec<T>{} ? splat<Vec<T>>(1) : largest;
    for (int64_t i = j + 1; i < m; ++i) {
      const Vec<T> x = a[i * n + j] / unit;
      a[i * n + j] = x;
      rest = mul_add(x, x, rest);
    }
    const Vec<T> first = a[j * n + j] / unit;
    const Vec<T> norm = square_root(mul_add(first, first, rest));
    const Vec<T> other = -copy_sign(norm, first);
    const auto nothing = rest == Vec<T>{};
    tau_[j] = nothing ? Vec<T>{} : (other - first) / other;
    const Vec<T> scale = nothing ? Vec<T>{} : splat<Vec<T>>(1) / (first - other);
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] *= scale;
    if (j + 1 < n) apply(j, j + 1, n, a);
    a[j * n + j] = (nothing ? first : other) * unit;
  }

  // x minus tau v v^T x, in columns [begin, width).
  void apply(int64_t j, int64_t begin, int64_t width, Vec<T>* x) const {
    for (int64_t c = begin; c < width; ++c) {
      Vec<T> sum = x[j * width + c];
      for (int64_t i = j + 1; i < m; ++i) sum = mul_add(a[i * n + j], x[i * width + c], sum);
      sum *= tau_[j];
      x[j * width + c] -= sum;
      for (int64_t i = j + 1; i < m; ++i) {
        x[i * width + c] = mul_add(-a[i * n + j], sum, x[i * width + c]);
      }
    }
  }
};

}  // namespace treenail::cpu
