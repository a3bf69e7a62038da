// SPDX-License-Identifier: Apache-2.0
// LU factors of small matrices, one per vector lane, with the greatest pivots of each column.
#pragma once

#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

template <class T>
using Index = LaneMask<T>;

// A group of matrices and what their rows stand beside: right sides, the order of the rows.
template <class T>
struct LaneLu {
  using L = LaneNumber<T>;
  L a[kMostLaneRows * kMostLaneRows];
  L x[kMostLaneRows * kMostLaneColumns];
  Index<T> order[kMostLaneRows];
  Index<T> exchanges;  // their number
  Index<T> singular;
  int64_t n, k;

  LaneLu(int64_t rows, int64_t columns) : n(rows), k(columns) {}
  void factor();
  void substitute_back();

 private:
  L multiples_[kMostLaneRows];  // of the pivot's row, for each row below

  Index<T> pivot_row(int64_t j) const;
  template <class V>
  V bring_up(Index<T> pivot, int64_t j, int64_t width, V* column);
  void eliminate(Index<T> pivot, int64_t j, int64_t width, L* column);
};

template <class T>
TN_INLINE Index<T> all_lanes(int64_t i) {
  return splat<Index<T>>(static_cast<ElementOf<Index<T>>>(i));
}

// The row at or below j whose element in column j is greatest, the first of equals; complex ones
// compared as LAPACK does.
template <class T>
Index<T> LaneLu<T>::pivot_row(int64_t j) const {
  Index<T> row = all_lanes<T>(j);
  LaneReal<T> greatest = size_of(a[j * n + j]);
  for (int64_t i = j + 1; i < n; ++i) {
    const LaneReal<T> size = size_of(a[i * n + j]);
    const Index<T> greater = size > greatest;
    greatest = greater ? size : greatest;
    row = greater ? all_lanes<T>(i) : row;
  }
  return row;
}

// Exchanges row j and the pivot's in one column of rows that are `width` apart; gives what is in
// row j then.
template <class T>
template <class V>
TN_INLINE V LaneLu<T>::bring_up(Index<T> pivot, int64_t j, int64_t width, V* column) {
  const V was = column[j * width];
  V now = was;
  for (int64_t i = j + 1; i < n; ++i) {
    const Index<T> here = pivot == all_lanes<T>(i);
    const V v = column[i * width];
    column[i * width] = choose(here, was, v);
    now = choose(here, v, now);
  }
  return column[j * width] = now;
}

template <class T>
TN_INLINE void LaneLu<T>::eliminate(Index<T> pivot, int64_t j, int64_t width, L* column) {
  const L top = bring_up(pivot, j, width, column);
  for (int64_t i = j + 1; i < n; ++i) {
    column[i * width] = mul_add(-multiples_[i], top, column[i * width]);
  }
}

// a becomes L and U, x becomes L^-1 P x.
template <class T>
void LaneLu<T>::factor() {
  exchanges = singular = Index<T>{};
  for (int64_t i = 0; i < n; ++i) order[i] = all_lanes<T>(i);
  for (int64_t j = 0; j < n; ++j) {
    const Index<T> row = pivot_row(j);
    exchanges -= row != all_lanes<T>(j);
    for (int64_t c = 0; c < j; ++c) bring_up(row, j, n, a + c);
    bring_up(row, j, 1, order);
    const L pivot = bring_up(row, j, n, a + j);
    singular |= is_zero(pivot);
    // Under a pivot of zero there is nothing to eliminate.
    const L inverse = choose(is_zero(pivot), L{}, reciprocal(pivot));
    for (int64_t i = j + 1; i < n; ++i) {
      a[i * n + j] = multiples_[i] = times(a[i * n + j], inverse);
    }
    for (int64_t c = j + 1; c < n; ++c) eliminate(row, j, n, a + c);
    for (int64_t c = 0; c < k; ++c) eliminate(row, j, k, x + c);
  }
}

// x becomes U^-1 x.
template <class T>
void LaneLu<T>::substitute_back() {
  for (int64_t i = n - 1; i >= 0; --i) {
    const L inverse = reciprocal(a[i * n + i]);
    for (int64_t c = 0; c < k; ++c) {
      L sum = x[i * k + c];
      for (int64_t j = i + 1; j < n; ++j) sum = mul_add(-a[i * n + j], x[j * k + c], sum);
      x[i * k + c] = times(sum, inverse);
    }
  }
}

}  // namespace treenail::cpu
