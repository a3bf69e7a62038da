// SPDX-License-Identifier: Apache-2.0
// Scalar definitions shared by all places that compute an op element by element: integer division
// and powers with their errors, Python's remainder. Level libraries and the baseline's u64 and
// complex loops use the same text.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace treenail::host {

[[noreturn]] void throw_division_by_zero();
[[noreturn]] void throw_negative_power();

template <class T>
inline T wrapping_negate(T x) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(U{0} - static_cast<U>(x));
}

// Toward zero. The one overflow, lowest / -1, wraps.
template <class T>
inline T truncate_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw_division_by_zero();
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrapping_negate(a);
    }
    return static_cast<T>(a / b);
  } else {
    return std::trunc(a / b);
  }
}

template <class T>
inline T truncate_mod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw_division_by_zero();
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
inline T floor_div(T a, T b) {
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
inline T floor_mod(T a, T b) {
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
inline T integer_power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) throw_negative_power();
  }
  U result = 1;
  U square = static_cast<U>(base);
  for (U e = static_cast<U>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

}  // namespace treenail::host
