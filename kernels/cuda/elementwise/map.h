// SPDX-License-Identifier: Apache-2.0
// The one loop of element-wise kernels: y[i] = f(a[i], b[i], ...) over a grid of one dimension, of
// any size. Where memory allows, a thread does a group of neighbours, whose 16 bytes it reads and
// writes at once. An operand may be y itself, element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/elementwise/broadcast.h"

namespace treenail::gpu {

// At most 8 elements, whose code is repeated.
template <class... T>
inline constexpr int kGroupSize = 16 / std::max({size_t{2}, sizeof(T)...});

template <class T, int kN>
struct alignas(sizeof(T) * kN) Group {
  T element[kN];
};

// One element for the whole group where `step` is 0.
template <int kN, class T>
TN_DEVICE Group<T, kN> load_group(const T* from, int64_t step) {
  Group<T, kN> group;
  if (step == 0) {
    const T x = *from;
    for (int k = 0; k < kN; ++k) group.element[k] = x;
  } else {
    group = *reinterpret_cast<const Group<T, kN>*>(from);
  }
  return group;
}
template <int kN, class T>
TN_DEVICE void store_group(T* to, const Group<T, kN>& group) {
  *reinterpret_cast<Group<T, kN>*>(to) = group;
}

// Of each operand, the place of the result's element i.
template <int kOperands>
struct Places {
  int64_t at[kOperands];
};
template <int kOperands>
TN_DEVICE Places<kOperands> places(const Broadcast& how, int64_t i) {
  Places<kOperands> p = {};
  TN_NO_UNROLL
  for (int d = 0; d < how.rank - 1; ++d) {
    const Divided here = divided(how.size[d], i);
    for (int k = 0; k < kOperands; ++k) p.at[k] += here.rest * how.stride[k][d];
    i = here.quotient;
  }
  for (int k = 0; k < kOperands; ++k) p.at[k] += i * how.stride[k][how.rank - 1];
  return p;
}

// Of one operand alone.
template <int kOperands>
TN_DEVICE int64_t place(const BroadcastOf<kOperands>& how, int operand, int64_t i) {
  int64_t at = 0;
  TN_NO_UNROLL
  for (int d = 0; d < how.rank - 1; ++d) {
    const Divided here = divided(how.size[d], i);
    at += here.rest * how.stride[operand][d];
    i = here.quotient;
  }
  return at + i * how.stride[operand][how.rank - 1];
}

TN_DEVICE bool is_aligned(const void* at, int bytes) {
  return reinterpret_cast<uintptr_t>(at) % static_cast<unsigned>(bytes) == 0;
}

// Do groups of kN elements lie together, or stand for one element, and aligned?
template <int kN, class T>
TN_DEVICE bool has_groups(const Broadcast& how, int operand, const T* from) {
  const int64_t* stride = how.stride[operand];
  if (stride[0] == 0) return true;
  bool together = stride[0] == 1 && is_aligned(from, sizeof(T) * kN);
  TN_NO_UNROLL
  for (int d = 1; d < how.rank; ++d) together = together && stride[d] % kN == 0;
  return together;
}

template <int kN, class F, class R, class... T>
TN_DEVICE void map_group(F f, R* y, const Group<T, kN>&... from) {
  Group<R, kN> result;
  for (int k = 0; k < kN; ++k) result.element[k] = f(from.element[k]...);
  store_group(y, result);
}

template <class F, class R, class... T, int... kAt>
TN_DEVICE void map_operands(int64_t n, const Broadcast& how, F f, R* y,
                            std::integer_sequence<int, kAt...>, const T*... from) {
  constexpr int kOperands = sizeof...(T), kN = kGroupSize<R, T...>;
  int64_t done = 0;
  const bool whole_rows = how.rank == 1 || how.size[0].size % kN == 0;
  if (kN > 1 && whole_rows && is_aligned(y, sizeof(R) * kN) &&
      (has_groups<kN>(how, kAt, from) && ...)) {
    TN_NO_UNROLL
    for (int64_t g = first(); g < n / kN; g += stride()) {
      const Places<kOperands> p = places<kOperands>(how, g * kN);
      map_group<kN>(f, y + g * kN, load_group<kN>(from + p.at[kAt], how.stride[kAt][0])...);
    }
    done = n / kN * kN;
  }
  TN_NO_UNROLL
  for (int64_t i = done + first(); i < n; i += stride()) {
    const Places<kOperands> p = places<kOperands>(how, i);
    y[i] = f(from[p.at[kAt]]...);
  }
}

// On operands that `how` describes.
template <class F, class R, class... T>
TN_DEVICE void map(int64_t n, const Broadcast& how, F f, R* y, const T*... from) {
  map_operands(n, how, f, y, std::make_integer_sequence<int, sizeof...(T)>(), from...);
}

}  // namespace treenail::gpu
