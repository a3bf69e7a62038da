// SPDX-License-Identifier: Apache-2.0
// Our own matrix product: C = op(A) op(B), row-major, op transposing where asked. Single-threaded
// on a block of C; who cuts C into blocks and hands them to the pool: matmul.cc, convolution.
// Register tile and block sizes follow the ISA level. An element's bits depend on m, n, k and the
// transposition flags, never on the block it was computed in.
#pragma once

#include <algorithm>
#include <cstdint>

namespace treenail::cpu {

template <class T>
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;  // A is stored [k, m]; B is stored [n, k]
  const T* a = nullptr;
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t ldb = 0;
  T* c = nullptr;
  int64_t ldc = 0;
  bool add_to_c = false;            // C += instead of C =
  const T* packed_b = nullptr;      // B as pack_b() leaves it, for who multiplies by it often
  int64_t c_row = 0, c_column = 0;  // where c begins, when it holds a part of C alone

  T* c_at(int64_t i, int64_t j) const { return c + (i - c_row) * ldc + j - c_column; }
};

// Computes C[m0:m1, n0:n1]; k == 0 gives zeros. T: float, double.
void multiply_block(const Product<float>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
void multiply_block(const Product<double>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1);

// Columns n0 (the first of a tile) to n1 of B[k, n] (or its transpose, stored [n, k]) in the order
// in which multiply_block reads it: the same bits without packing it on the way. The whole of it is
// packed_b_elements().
int64_t packed_b_elements(int64_t n, int64_t k);
void pack_b(const Product<float>& p, int64_t n0, int64_t n1, float* packed);
void pack_b(const Product<double>& p, int64_t n0, int64_t n1, double* packed);

// How a product is cut into blocks for the pool: by its shape alone.
struct BlockCut {
  int64_t rows = 1, columns = 1;  // of one block; the last ones are shorter
  int64_t row_blocks = 1, column_blocks = 1;
  int64_t blocks() const { return row_blocks * column_blocks; }
};
BlockCut cut_product(int64_t m, int64_t n, int64_t k, bool trans_a);

// Multiply-adds per nanosecond of one thread at this level, about. Estimates only.
template <class T>
constexpr double product_rate() {
#if defined(__FMA__) || defined(__aarch64__)
  constexpr double per_lane = 6;
#else
  constexpr double per_lane = 4;
#endif
#if defined(__AVX__)
  return per_lane * 32 / sizeof(T);
#else
  return per_lane * 16 / sizeof(T);
#endif
}
// Below about three rows the time is that of reading B, 64 bytes a nanosecond from the L3 cache.
template <class T>
double product_cost_ns(int64_t m, int64_t n, int64_t k) {
  const double b_elements = static_cast<double>(n) * static_cast<double>(k);
  return 20 + b_elements * std::max(static_cast<double>(m) / product_rate<T>(),
                                    m > 0 ? sizeof(T) / 64.0 : 0.0);
}

}  // namespace treenail::cpu
