// SPDX-License-Identifier: Apache-2.0
// As many sums as there are columns stand in registers, their number known when this is compiled.
#include "kernels/cpu/products/tiny_product.h"

#include <algorithm>

#include "kernels/cpu/products/gemv.h"

namespace treenail::cpu {
namespace {

constexpr int kMostColumns = 8;
// Multiply-adds of an entry; beyond, the register tiles of the general product are faster.
constexpr int64_t kMostWork = kVecBytes >= 32 ? 512 : 128;

// One entry: element (i, l) of A lies at a[i * a_row + l * a_step].
template <class T, int kColumns, bool kTransB>
TN_INLINE void multiply_entry(int64_t m, int64_t k, int64_t a_row, int64_t a_step, const T* a,
                              const T* b, T* c) {
  for (int64_t i = 0; i < m; ++i) {
    T sum[kColumns] = {};
    for (int64_t l = 0; l < k; ++l) {
      const T x = a[i * a_row + l * a_step];
#pragma GCC unroll 8
      for (int j = 0; j < kColumns; ++j)
        sum[j] = mul_add(x, kTransB ? b[j * k + l] : b[l * kColumns + j], sum[j]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) c[i * kColumns + j] = sum[j];
  }
}

template <class T, int kColumns, bool kTransB>
void multiply_columns(const BatchProduct& g, int64_t begin, int64_t end, const T* a, const T* b,
                      T* c) {
  // Along the last axis of the batch entries follow each other at steps that stay.
  const BatchProduct::Axis last = g.axes.back();
  const int64_t a_next = last.step_a * g.a_elements(), b_next = last.step_b * g.b_elements();
  const int64_t a_row = g.trans_a ? 1 : g.k, a_step = g.trans_a ? g.m : 1;
  while (begin < end) {
    int64_t ia, ib;
    g.entries(begin, ia, ib);
    const T *from_a = a + ia * g.a_elements(), *from_b = b + ib * g.b_elements();
    T* to = c + begin * g.c_elements();
    const int64_t stop = std::min(end, (begin / last.extent + 1) * last.extent);
    for (; begin < stop; ++begin) {
      multiply_entry<T, kColumns, kTransB>(g.m, g.k, a_row, a_step, from_a, from_b, to);
      from_a += a_next;
      from_b += b_next;
      to += g.c_elements();
    }
  }
}

template <class T, int kColumns = kMostColumns>
void multiply(const BatchProduct& g, int64_t begin, int64_t end, const T* a, const T* b, T* c) {
  if (g.n == kColumns) {
    const auto columns =
        g.trans_b ? multiply_columns<T, kColumns, true> : multiply_columns<T, kColumns, false>;
    columns(g, begin, end, a, b, c);
  } else if constexpr (kColumns > 1) {
    multiply<T, kColumns - 1>(g, begin, end, a, b, c);
  }
}

}  // namespace

// Longer rows have sums in several registers each.
bool is_tiny(const BatchProduct& g) {
  return g.batch > 1 && g.m >= 1 && g.n >= 1 && g.n <= kMostColumns && g.k <= kShortRow &&
         g.m * g.n * g.k <= kMostWork;
}

void multiply_tiny(const BatchProduct& g, int64_t begin, int64_t end, const float* a,
                   const float* b, float* c) {
  multiply(g, begin, end, a, b, c);
}
void multiply_tiny(const BatchProduct& g, int64_t begin, int64_t end, const double* a,
                   const double* b, double* c) {
  multiply(g, begin, end, a, b, c);
}

}  // namespace treenail::cpu
