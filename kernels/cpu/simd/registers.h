// SPDX-License-Identifier: Apache-2.0
// What the matrix and convolution kernels need beyond vec.h: compile-time unrolling, transposition
// of a square of registers, the sum over a vector's lanes in a fixed order, and what register files
// look like.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/simd/vec_fma.h"

namespace treenail::cpu {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kVecRegisters = 32;
#else
inline constexpr int kVecRegisters = 16;
#endif

// Whether mul_add rounds once at this level.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

// f(integral_constant<int, 0>) ... f(integral_constant<int, N - 1>).
template <int N, class F>
TN_INLINE void unroll(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

// One step of a transposition, between rows whose numbers differ by S: lane l comes from a (0 .. n
// - 1) or b (n .. 2n - 1).
constexpr int exchanged_lane(int n, int s, bool high, int l) {
  if (high) return (l & s) != 0 ? n + l : l + s;
  return (l & s) != 0 ? n + l - s : l;
}
template <class T, int S, bool kHigh>
TN_INLINE Vec<T> exchange(Vec<T> a, Vec<T> b) {
  constexpr int n = kLanes<T>;
  return [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline))->Vec<T> {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, exchanged_lane(n, S, kHigh, L)...);
#else
    using Lane = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    return __builtin_shuffle(a, b, Vec<Lane>{exchanged_lane(n, S, kHigh, L)...});
#endif
  }
  (std::make_integer_sequence<int, n>{});
}

// rows[i][j] becomes rows[j][i], for as many rows as a vector has lanes.
template <class T>
TN_INLINE void transpose(Vec<T> (&rows)[kLanes<T>]) {
  auto step = [&]<int S>(std::integral_constant<int, S>) __attribute__((always_inline)) {
    unroll<kLanes<T>>([&](auto i) __attribute__((always_inline)) {
      if constexpr ((i.value & S) == 0) {
        const Vec<T> a = rows[i.value], b = rows[i.value + S];
        rows[i.value] = exchange<T, S, false>(a, b);
        rows[i.value + S] = exchange<T, S, true>(a, b);
      }
    });
  };
  if constexpr (kLanes<T> >= 16) step(std::integral_constant<int, 8>{});
  if constexpr (kLanes<T> >= 8) step(std::integral_constant<int, 4>{});
  if constexpr (kLanes<T> >= 4) step(std::integral_constant<int, 2>{});
  step(std::integral_constant<int, 1>{});
}

// All lanes combined, one half onto the other until one is left: a fixed order.
template <class Op, class T, int kBytes = kVecBytes>
TN_INLINE T fold_lanes(typename VecType<T, kBytes>::type v) {
  if constexpr (kBytes == 2 * sizeof(T)) {
    return Op::combine(v[0], v[1]);
  } else {
    typename VecType<T, kBytes / 2>::type half[2];
    std::memcpy(half, &v, kBytes);
    return fold_lanes<Op, T, kBytes / 2>(Op::combine(half[0], half[1]));
  }
}

struct Plus {
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    return a + b;
  }
};
template <class T, int kBytes = kVecBytes>
TN_INLINE T sum_lanes(typename VecType<T, kBytes>::type v) {
  return fold_lanes<Plus, T, kBytes>(v);
}

}  // namespace treenail::cpu
