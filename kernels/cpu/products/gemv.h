// SPDX-License-Identifier: Apache-2.0
// One row times a matrix: bound by reading B, so B is read once, in order. Columns of an
// untransposed B stand in registers while its rows stream by; a transposed B is a dot product per
// row. Used by gemm.cc; a header because it is generic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

// y[Vectors * lanes] = or += x B over k rows of B.
template <class T, int Vectors>
void row_times_columns(int64_t k, const T* x, const T* b, int64_t ldb, T* y, bool add) {
  constexpr int lanes = kLanes<T>;
  Vec<T> sum[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) sum[v] = Vec<T>{};
  for (int64_t i = 0; i < k; ++i) {
    const Vec<T> a = splat<Vec<T>>(x[i]);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sum[v] = mul_add(a, load<Vec<T>>(b + v * lanes), sum[v]);
    b += ldb;
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v)
    store(y + v * lanes, add ? load<Vec<T>>(y + v * lanes) + sum[v] : sum[v]);
}

// Fewer columns than a vector: the same arithmetic on whole vectors, of which the last rows of B,
// behind which its storage may end, are copied first.
template <class T>
void row_times_few_columns(int64_t k, const T* x, const T* b, int64_t ldb, T* y, int64_t columns,
                           bool add) {
  T padded[kLanes<T>] = {};
  Vec<T> sum{};
  const int64_t whole = std::max<int64_t>(0, k - (kLanes<T> - columns + ldb - 1) / ldb);
  for (int64_t i = 0; i < whole; ++i)
    sum = mul_add(splat<Vec<T>>(x[i]), load<Vec<T>>(b + i * ldb), sum);
  for (int64_t i = whole; i < k; ++i) {
    for (int64_t j = 0; j < columns; ++j) padded[j] = b[i * ldb + j];
    sum = mul_add(splat<Vec<T>>(x[i]), load<Vec<T>>(padded), sum);
  }
  store(padded, sum);
  for (int64_t j = 0; j < columns; ++j) y[j] = add ? y[j] + padded[j] : padded[j];
}

// x · b[r] for Rows rows of B, `ldb` apart.
template <class T, int Rows>
void row_dots(int64_t k, const T* x, const T* b, int64_t ldb, T* y, bool add) {
  constexpr int lanes = kLanes<T>;
  constexpr int chains = Rows == 1 ? 4 : 2;  // independent sums: hide the latency
  Vec<T> sum[Rows][chains] = {};
  int64_t i = 0;
  for (; i + lanes * chains <= k; i += lanes * chains) {
#pragma GCC unroll 4
    for (int q = 0; q < chains; ++q) {
      const Vec<T> a = load<Vec<T>>(x + i + q * lanes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r)
        sum[r][q] = mul_add(a, load<Vec<T>>(b + r * ldb + i + q * lanes), sum[r][q]);
    }
  }
  for (; i < k; i += lanes) {
    T tail[lanes] = {};
    const int64_t count = std::min<int64_t>(lanes, k - i);
    std::copy_n(x + i, count, tail);
    const Vec<T> a = load<Vec<T>>(tail);
    for (int r = 0; r < Rows; ++r) {
      std::copy_n(b + r * ldb + i, count, tail);
      sum[r][0] = mul_add(a, load<Vec<T>>(tail), sum[r][0]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int q = 1; q < chains; ++q) sum[r][0] += sum[r][q];
    const T total = sum_lanes<T>(sum[r][0]);
    y[r] = add ? y[r] + total : total;
  }
}

// A row of B this short leaves most of a vector or of its dot product's chains idle.
constexpr int64_t kShortRow = 16;

// x · b[r] for `rows` short rows of B: a vector of rows at a time, each summed in order.
template <class T>
void short_dots(int64_t k, const T* x, const T* b, int64_t ldb, int64_t rows, T* y, bool add) {
  constexpr int lanes = kLanes<T>;
  int64_t r = 0;
  for (; r + lanes <= rows; r += lanes) {
    Vec<T> sum{};
    for (int64_t i = 0; i < k; ++i) {
      Vec<T> column{};
      if (ldb == 1) {
        column = load<Vec<T>>(b + r + i);
      } else {
#pragma GCC unroll 16
        for (int lane = 0; lane < lanes; ++lane) column[lane] = b[(r + lane) * ldb + i];
      }
      sum = mul_add(splat<Vec<T>>(x[i]), column, sum);
    }
    store(y + r, add ? load<Vec<T>>(y + r) + sum : sum);
  }
  for (; r < rows; ++r) {
    T sum = 0;
    for (int64_t i = 0; i < k; ++i) sum = mul_add(x[i], b[r * ldb + i], sum);
    y[r] = add ? y[r] + sum : sum;
  }
}

// Columns [n0, n1) of a product with m == 1 and A a contiguous row.
template <class T>
void multiply_row(const Product<T>& p, int64_t n0, int64_t n1) {
  constexpr int lanes = kLanes<T>;
  constexpr int wide = 8;
  int64_t j = n0;
  if (p.trans_b) {
    // The rows of B taken together never change a row's own sums, yet Rows == 1 uses other chains:
    // one row at a time only where n is 1, so that a cut of the columns keeps the bits.
    if (p.k <= kShortRow) {
      short_dots<T>(p.k, p.a, p.b + j * p.ldb, p.ldb, n1 - j, p.c + j, p.add_to_c);
      return;
    }
    if (p.n == 1) {
      row_dots<T, 1>(p.k, p.a, p.b, p.ldb, p.c, p.add_to_c);
      return;
    }
    for (; j + 4 <= n1; j += 4)
      row_dots<T, 4>(p.k, p.a, p.b + j * p.ldb, p.ldb, p.c + j, p.add_to_c);
    for (; j + 2 <= n1; j += 2)
      row_dots<T, 2>(p.k, p.a, p.b + j * p.ldb, p.ldb, p.c + j, p.add_to_c);
    if (j < n1) {
      T both[2];
      row_dots<T, 2>(p.k, p.a, p.b + j * p.ldb, 0, both, false);
      p.c[j] = p.add_to_c ? p.c[j] + both[0] : both[0];
    }
    return;
  }
  for (; j + wide * lanes <= n1; j += wide * lanes) {
    row_times_columns<T, wide>(p.k, p.a, p.b + j, p.ldb, p.c + j, p.add_to_c);
  }
  for (; j + lanes <= n1; j += lanes)
    row_times_columns<T, 1>(p.k, p.a, p.b + j, p.ldb, p.c + j, p.add_to_c);
  if (j < n1) row_times_few_columns<T>(p.k, p.a, p.b + j, p.ldb, p.c + j, n1 - j, p.add_to_c);
}

}  // namespace treenail::cpu
