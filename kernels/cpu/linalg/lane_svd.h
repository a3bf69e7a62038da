// SPDX-License-Identifier: Apache-2.0
// Singular values and vectors of small matrices by Hestenes' one-sided form of Jacobi's method:
// rotations of columns until they are orthogonal. Their QR factors then make orthonormal vectors of
// them, also where columns are zero, and all that full matrices need.
#pragma once

#include <limits>

#include "kernels/cpu/linalg/jacobi.h"
#include "kernels/cpu/linalg/lane_qr.h"

namespace treenail::cpu {

// Of m x n matrices with m >= n.
template <class T>
struct LaneSvd {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  LaneQr<T> qr;  // qr.a: the matrix; qr.q: its left vectors
  L v[kMostLaneRows * kMostLaneRows];
  L values[kMostLaneRows];
  LaneMask<T> not_finite, turned;
  int64_t m, n;

  LaneSvd(int64_t rows, int64_t columns, int64_t of_u)
      : qr(rows, columns, of_u), m(rows), n(columns) {}

  void solve() {
    const R unit = scale();
    set_identity<T>(v, n, n);
    turned = ~LaneMask<T>{};
    for (int sweep = 0; sweep < kMostSweeps && any(turned); ++sweep) turned = this->sweep();
    sort_columns();
    qr.factor();
    for (int64_t j = 0; j < n; ++j) take_value(j, unit);
    sort_values();
    for (int64_t i = 0; i < m * qr.columns; ++i) qr.q[i] = spoilt(qr.q[i]);
    for (int64_t i = 0; i < n * n; ++i) v[i] = spoilt(v[i]);
  }

 private:
  R norm_;

  L spoilt(L x) const {
    return choose(not_finite, constant<T>(std::numeric_limits<RealOf<T>>::quiet_NaN()), x);
  }

  // Divides by the largest element, so that squares stay in range; a matrix that has none is zero
  // from here on.
  R scale() {
    const R largest = largest_of<T>(qr.a, m * n, &not_finite);
    const R unit = largest == R{} ? splat<R>(1) : largest;
    R squares = R{};
    for (int64_t i = 0; i < m * n; ++i) {
      qr.a[i] = choose(not_finite, L{}, qr.a[i] / unit);
      squares = add_square(qr.a[i], squares);
    }
    norm_ = square_root(squares);
    return unit;
  }

  L product(int64_t p, int64_t q) const {
    L sum = L{};
    for (int64_t i = 0; i < m; ++i) {
      sum = mul_add(conjugate(qr.a[i * n + p]), qr.a[i * n + q], sum);
    }
    return sum;
  }
  R square(int64_t p) const {
    R sum = R{};
    for (int64_t i = 0; i < m; ++i) sum = add_square(qr.a[i * n + p], sum);
    return sum;
  }

  // Below this, the product of two columns of these lengths is rounding: in the product itself, or
  // in the shorter column, which rotations with longer ones leave nothing exact of.
  R negligible(R p, R q) const {
    const R in_product = (kRounding<T> * static_cast<RealOf<T>>(m)) * (p * q);
    return greater_of(in_product, (2 * kRounding<T>)*(greater_of(p, q) * norm_));
  }

  LaneMask<T> sweep() {
    LaneMask<T> any_turned = {};
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const R of_p = square(p), of_q = square(q);
        const L between = product(p, q);
        const LaneMask<T> active =
            largest_part(between) > negligible(square_root(of_p), square_root(of_q));
        if (!any(active)) continue;
        any_turned |= active;
        const Rotation<T> rotation(active, of_p, between, of_q);
        for (int64_t i = 0; i < m; ++i) rotation.turn(qr.a[i * n + p], qr.a[i * n + q]);
        for (int64_t i = 0; i < n; ++i) rotation.turn(v[i * n + p], v[i * n + q]);
      }
    }
    return any_turned;
  }

  // Descending, by exchanges of neighbours in `values` and in the columns of v and x.
  void sort(L* x, int64_t width) {
    for (int64_t round = 0; round < n; ++round) {
      for (int64_t j = round % 2; j + 1 < n; j += 2) {
        const LaneMask<T> wrong = real_part(values[j]) < real_part(values[j + 1]);
        exchange_where(wrong, values[j], values[j + 1]);
        for (int64_t i = 0; i < m; ++i) {
          exchange_where(wrong, x[i * width + j], x[i * width + j + 1]);
        }
        for (int64_t i = 0; i < n; ++i) exchange_where(wrong, v[i * n + j], v[i * n + j + 1]);
      }
    }
  }
  void sort_columns() {
    for (int64_t j = 0; j < n; ++j) values[j] = from_real<T>(square(j));
    sort(qr.a, n);
  }
  // Those of columns that are rounding alone may have changed places.
  void sort_values() { sort(qr.q, qr.columns); }

  // The singular value is r's diagonal element, whose sign goes to the left vector.
  void take_value(int64_t j, R unit) {
    const R r = real_part(qr.a[j * n + j]);
    values[j] = spoilt(from_real<T>(absolute(r) * unit));
    for (int64_t i = 0; i < m; ++i) {
      L& u = qr.q[i * qr.columns + j];
      u = choose(r < R{}, -u, u);
    }
  }
};

}  // namespace treenail::cpu
