// SPDX-License-Identifier: Apache-2.0
// Changes of type between those that are computed in.
#pragma once

#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

// As the language has it.
template <class To, class From>
TN_INLINE auto converted(From x) {
#if !defined(TN_GPU)
  if constexpr (is_vec<From>) {
    return __builtin_convertvector(x, Vec<To>);
  } else
#endif
    return static_cast<To>(x);
}

// A double as the float toward zero from it, its last bit set where that is not exact: rounding
// this once more to fewer bits gives what rounding the double would have given.
TN_INLINE float to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const uint32_t u = bits<uint32_t>(nearest);
  const double back = static_cast<double>(nearest);
  const double size = back < 0 ? -back : back, wanted = x < 0 ? -x : x;
  const uint32_t truncated = size > wanted ? u - 1u : u;
  const bool exact = (size == wanted) | (x != x);
  return bits<float>(exact ? u : truncated | 1u);
}

// Toward zero; beyond the range its nearest end, NaN 0.
template <class I, class F>
TN_INLINE auto saturated(F x) {
  using Number = ElementOf<F>;
  using To = std::conditional_t<is_vec<F>, Vec<I>, I>;
  constexpr Number kEnd = sizeof(I) == 4 ? Number(2147483648.0) : Number(9223372036854775808.0);
  const F end = splat<F>(kEnd);
  const auto inside = (x >= -end) & (x < end);
  const F within = inside ? x : F{};
  const To y = converted<I>(within);
  const To high = x >= end ? splat<To>(Limits<I>::kMost) : y;
  return x < -end ? splat<To>(Limits<I>::kLeast) : high;
}

template <class To>
struct Plain {  // exact, to nearest, or modulo 2^bits, as the types have it
  template <class From>
  TN_INLINE static auto apply(From x) {
    return converted<To>(x);
  }
};
template <class To>
struct Saturated {
  template <class From>
  TN_INLINE static auto apply(From x) {
    return saturated<To>(x);
  }
};
struct ToBool {
  template <class From>
  TN_INLINE static auto apply(From x) {
    return x != From{};
  }
};
}  // namespace
}  // namespace treenail::TN_SIDE::elementwise
