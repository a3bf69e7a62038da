// SPDX-License-Identifier: Apache-2.0
// The C library's logarithm of the gamma function. Its lgamma proper writes the sign to a variable
// of the process.
#pragma once

#include <cmath>

namespace treenail::host {

inline double lgamma_of(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
inline long double lgamma_of(long double x) {
  int sign = 0;
  return ::lgammal_r(x, &sign);
}

}  // namespace treenail::host
