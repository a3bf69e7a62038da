// SPDX-License-Identifier: Apache-2.0
// Products of a few long rows and a few long columns: each element is a dot product. Whichever of A
// and B does not have k as its inner axis is turned round on the way, some of it at a time; each
// time sums from zero and then adds to C. Used by gemm.cc; a header because it is generic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/gemv.h"

namespace treenail::cpu {

constexpr int64_t kThin = 4;         // rows and columns at most
constexpr int64_t kThinDepth = 512;  // values of k turned round together

template <class T>
bool is_thin(const Product<T>& p) {
  constexpr int64_t kLeastDepth = 128;
  return p.m <= kThin && p.n <= kThin && p.m * p.n > 1 && p.k >= kLeastDepth;
}

// Rows of `kThinDepth` from columns: to[j * kThinDepth + l] = from[l * step + j].
template <class T, int kColumns>
TN_INLINE void turn_columns(const T* from, int64_t step, int64_t depth, T* to) {
  for (int64_t l = 0; l < depth; ++l) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) to[j * kThinDepth + l] = from[l * step + j];
  }
}
template <class T, int kColumns = kThin>
void turn(const T* from, int64_t columns, int64_t step, int64_t depth, T* to) {
  if (columns < kColumns) {
    if constexpr (kColumns > 1) turn<T, kColumns - 1>(from, columns, step, depth, to);
  } else if (step == kColumns) {  // known when this is compiled: shuffles
    turn_columns<T, kColumns>(from, kColumns, depth, to);
  } else {
    turn_columns<T, kColumns>(from, step, depth, to);
  }
}

template <class T>
void multiply_thin(const Product<T>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  alignas(64) T a_rows[kThin * kThinDepth], b_rows[kThin * kThinDepth];
  Product<T> row = p;
  row.m = 1;
  row.trans_a = false;
  row.trans_b = true;
  for (int64_t k0 = 0; k0 < p.k; k0 += kThinDepth) {
    row.k = std::min(kThinDepth, p.k - k0);
    row.add_to_c = p.add_to_c || k0 > 0;
    if (p.trans_a) turn(p.a + k0 * p.lda, p.m, p.lda, row.k, a_rows);
    if (!p.trans_b) turn(p.b + k0 * p.ldb, p.n, p.ldb, row.k, b_rows);
    row.b = p.trans_b ? p.b + k0 : b_rows;
    row.ldb = p.trans_b ? p.ldb : kThinDepth;
    for (int64_t i = m0; i < m1; ++i) {
      row.a = p.trans_a ? a_rows + i * kThinDepth : p.a + i * p.lda + k0;
      row.c = p.c_at(i, 0);
      multiply_row(row, n0, n1);
    }
  }
}

}  // namespace treenail::cpu
