// SPDX-License-Identifier: Apache-2.0
// Division of integers and toward whole numbers, remainders, powers of integers: of one number at a
// time, for they have errors or take library functions. Each side refuses a divisor of zero and a
// negative power in its own way before it comes here.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/elementwise/side.h"

namespace treenail::TN_SIDE::elementwise {

template <class T>
TN_INLINE T wrapping_negate(T x) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(U{0} - static_cast<U>(x));
}

// Toward zero. The one overflow, lowest / -1, wraps.
template <class T>
TN_INLINE T truncate_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrapping_negate(a);
    }
    return static_cast<T>(a / b);
  } else {
    return std::trunc(a / b);
  }
}

template <class T>
TN_INLINE T truncate_mod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

// Toward minus infinity: Python's //.
template <class T>
TN_INLINE T floor_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T q = truncate_div(a, b);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(q - ((truncate_mod(a, b) != 0) & ((a < 0) != (b < 0))));
    }
    return q;
  } else {
    return std::floor(a / b);
  }
}

// The remainder with the divisor's sign: Python's %.
template <class T>
TN_INLINE T floor_mod(T a, T b) {
  const T r = truncate_mod(a, b);
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
    return r;
  } else {
    if (r == 0) return std::copysign(T{0}, b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
}

// Modulo 2^bits, by squaring.
template <class T>
TN_INLINE T integer_power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  U result = 1;
  U square = static_cast<U>(base);
  for (U e = static_cast<U>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

}  // namespace treenail::TN_SIDE::elementwise

// The second is one of the functions above, which host/elementwise/arithmetic.h has too.
#define TN_INTEGER_DIVISION_OPS(ROW)            \
  ROW(Div, truncate_div, int32_t, 2.0f)         \
  ROW(Div, truncate_div, int64_t, 3.0f)         \
  ROW(TruncateDiv, truncate_div, int32_t, 2.0f) \
  ROW(TruncateDiv, truncate_div, int64_t, 3.0f) \
  ROW(FloorDiv, floor_div, int32_t, 2.5f)       \
  ROW(FloorDiv, floor_div, int64_t, 4.0f)       \
  ROW(FloorMod, floor_mod, int32_t, 2.5f)       \
  ROW(FloorMod, floor_mod, int64_t, 4.0f)       \
  ROW(Mod, truncate_mod, int32_t, 2.0f)         \
  ROW(Mod, truncate_mod, int64_t, 3.0f)         \
  ROW(TruncateMod, truncate_mod, int32_t, 2.0f) \
  ROW(TruncateMod, truncate_mod, int64_t, 3.0f)
#define TN_INTEGER_POWER_OPS(ROW)        \
  ROW(Pow, integer_power, int32_t, 5.0f) \
  ROW(Pow, integer_power, int64_t, 6.0f)
#define TN_FLOAT_DIVISION_OPS(ROW)             \
  ROW(TruncateDiv, truncate_div, float, 0.5f)  \
  ROW(TruncateDiv, truncate_div, double, 1.0f) \
  ROW(FloorDiv, floor_div, float, 0.5f)        \
  ROW(FloorDiv, floor_div, double, 1.0f)       \
  ROW(FloorMod, floor_mod, float, 8.0f)        \
  ROW(FloorMod, floor_mod, double, 8.0f)       \
  ROW(Mod, truncate_mod, float, 8.0f)          \
  ROW(Mod, truncate_mod, double, 8.0f)         \
  ROW(TruncateMod, truncate_mod, float, 8.0f)  \
  ROW(TruncateMod, truncate_mod, double, 8.0f)
