// SPDX-License-Identifier: Apache-2.0
// The functions of kernels/elementwise/division.h with their errors, for the level libraries and
// the baseline's u64 loops.
#pragma once

#include <type_traits>

#include "kernels/elementwise/division.h"

namespace treenail::host {

[[noreturn]] void throw_division_by_zero();
[[noreturn]] void throw_negative_power();

using cpu::elementwise::wrapping_negate;

template <class T>
inline void check_divisor(T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw_division_by_zero();
  }
}

template <class T>
inline T truncate_div(T a, T b) {
  check_divisor(b);
  return cpu::elementwise::truncate_div(a, b);
}
template <class T>
inline T truncate_mod(T a, T b) {
  check_divisor(b);
  return cpu::elementwise::truncate_mod(a, b);
}
template <class T>
inline T floor_div(T a, T b) {
  check_divisor(b);
  return cpu::elementwise::floor_div(a, b);
}
template <class T>
inline T floor_mod(T a, T b) {
  check_divisor(b);
  return cpu::elementwise::floor_mod(a, b);
}
template <class T>
inline T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) throw_negative_power();
  }
  return cpu::elementwise::integer_power(base, exponent);
}

}  // namespace treenail::host
