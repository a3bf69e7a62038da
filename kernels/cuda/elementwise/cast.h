// SPDX-License-Identifier: Apache-2.0
// Cast from one type in memory to another, as host/elementwise/cast.cc takes its steps.
#pragma once

#include <type_traits>

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/conversion.h"

namespace treenail::gpu {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Toward zero; beyond the range its nearest end, NaN 0.
template <class To, class F>
TN_DEVICE To to_integer(F x) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (!(x > 0)) return 0;
    return x >= F(18446744073709551616.0) ? Limits<To>::kMost : static_cast<To>(x);
  } else {
    using C = Computed<To>;
    constexpr C kLow = Limits<To>::kLeast, kHigh = Limits<To>::kMost;
    const C whole = elementwise::saturated<C>(x);
    const C raised = whole < kLow ? kLow : whole;
    return static_cast<To>(raised > kHigh ? kHigh : raised);
  }
}

// Rounded once: through a double where float does not hold the number.
template <class To, class C>
TN_DEVICE To to_half(C x) {
  constexpr bool kByDouble =
      std::is_same_v<C, double> || (std::is_same_v<To, BFloat16> && !std::is_same_v<C, float>);
  if constexpr (kByDouble) {
    return Stored<To>::narrow(elementwise::to_odd(static_cast<double>(x)));
  } else {
    return Stored<To>::narrow(static_cast<float>(x));
  }
}

template <class To>
struct CastTo {
  template <class From>
  TN_DEVICE To operator()(From from) const {
    const auto x = Stored<From>::widen(from);
    if constexpr (std::is_same_v<To, bool>) {
      return x != 0;
    } else if constexpr (kIsHalf<To>) {
      return to_half<To>(x);
    } else if constexpr (std::is_floating_point_v<decltype(x + 0)> && std::is_integral_v<To>) {
      return to_integer<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace treenail::gpu
