// SPDX-License-Identifier: Apache-2.0
// What kernels over the last axis share: a tensor as rows, in float or double whatever it is stored
// in, and loops over the vectors of a row whose tail runs the same vector code on a padded vector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

// n < lanes elements; the other lanes are `fill`.
template <class V, class C = ElementOf<V>>
V load_filled(const C* p, int64_t n, C fill) {
  if (n < 0 || n >= kLanesOf<V>) __builtin_unreachable();  // else GCC 14 warns of the copy
  C lanes[kLanesOf<V>];
  std::fill_n(lanes, kLanesOf<V>, fill);
  std::copy_n(p, n, lanes);
  return load<V>(lanes);
}

// f(vector, index, count) over a block; lanes behind the last element hold `fill`.
template <class V, class F, class C = ElementOf<V>>
TN_INLINE void for_vectors(const C* x, int64_t n, C fill, F f) {
  constexpr int64_t lanes = kLanesOf<V>;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(load<V>(x + i), i, lanes);
  if (i < n) f(load_filled<V>(x + i, n - i, fill), i, n - i);
}

template <class V, class C = ElementOf<V>>
TN_INLINE void store_some(C* to, V v, int64_t n) {
  if (n == kLanesOf<V>) {
    store(to, v);
  } else {
    store_part(to, v, n);
  }
}

// The sum of f(vector, index, count) over a row, in an order that follows from n alone; four
// partial sums, so that additions do not wait for each other. Lanes behind the last element hold
// `fill`: f has to make 0 of it.
template <class V, class F, class C = ElementOf<V>>
TN_INLINE C sum_over(const C* x, int64_t n, C fill, F f) {
  constexpr int64_t lanes = kLanesOf<V>;
  V s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 += f(load<V>(x + i), i, lanes);
    s1 += f(load<V>(x + i + lanes), i + lanes, lanes);
    s2 += f(load<V>(x + i + 2 * lanes), i + 2 * lanes, lanes);
    s3 += f(load<V>(x + i + 3 * lanes), i + 3 * lanes, lanes);
  }
  for (; i + lanes <= n; i += lanes) s0 += f(load<V>(x + i), i, lanes);
  if (i < n) s1 += f(load_filled<V>(x + i, n - i, fill), i, n - i);
  return sum_lanes<C, sizeof(V)>((s0 + s1) + (s2 + s3));
}

// A vector that lies beside a row; the lanes behind the last element hold 0.
template <class V, class C = ElementOf<V>>
TN_INLINE V beside(const C* p, int64_t i, int64_t some) {
  return some == kLanesOf<V> ? load<V>(p + i) : load_part<V>(p + i, some);
}

struct Rows {
  int64_t rows, columns, grain;
  double cost_per_row, cost;
  Rows(const Shape& shape) {
    columns = shape.dim(shape.rank() - 1);
    // Without columns nothing is computed per row, except that a batch (rank 2) has losses.
    rows = columns > 0 ? shape.num_elements() / columns : shape.rank() == 2 ? shape.dim(0) : 0;
    grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(columns, 1));
    cost_per_row = 30 + 2.0 * static_cast<double>(columns);
    cost = 20 + cost_per_row * static_cast<double>(rows);
  }
};

// Rows [begin, end) of a tensor as C, float or double: the tensor's own, or, of 16-bit elements,
// widened into scratch memory at the same place.
template <class C>
const C* read_rows(const Tensor& from, float* scratch, int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(from.dtype())) {
      widen(from.dtype(), from.raw(), begin, end - begin, scratch + begin);
      return scratch;
    }
  }
  return from.data<C>();
}
template <class C>
C* written_rows(Tensor& to, float* scratch) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(to.dtype())) return scratch;
  }
  return to.data<C>();
}
inline void finish_rows(Tensor& to, const float* scratch, int64_t begin, int64_t end) {
  if (is_half(to.dtype())) narrow(to.dtype(), scratch + begin, end - begin, to.raw(), begin);
}

// Scratch for `tensors` of the input's size and one of its batch's.
inline size_t scratch_for(DType dtype, const Rows& r, int64_t tensors) {
  if (!is_half(dtype)) return 0;
  return static_cast<size_t>(r.rows * (tensors * r.columns + 1)) * sizeof(float);
}

}  // namespace treenail::cpu
