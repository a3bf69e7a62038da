// SPDX-License-Identifier: Apache-2.0
// Hurwitz zeta and polygamma functions of one element in precision T: double for floats, long
// double for doubles, which leaves the result little but its own rounding.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/host/special/lgamma.h"

namespace treenail::host {

// w^-s, for a whole s, as derivatives of digamma have it, by squaring: many times faster than pow.
template <class T>
T reciprocal_power(T w, T s) {
  if (s != std::floor(s) || s > 64) return std::pow(w, -s);
  T product = 1;
  for (int n = static_cast<int>(s); n > 0; n >>= 1, w *= w) {
    if ((n & 1) != 0) product *= w;
  }
  return 1 / product;
}

// (q + k)^-s summed over k = 0, 1, …, with q and each term's base over `unit`, s > 1 and q > 0:
// some terms, then the Euler-Maclaurin formula (Abramowitz and Stegun 23.1.30).
template <class T>
T zeta_sum(T s, T q, T unit = 1) {
  // B_2k / (2k)!
  static constexpr T kBernoulli[] = {T(1) / 12,
                                     T(-1) / 720,
                                     T(1) / 30240,
                                     T(-1) / 1209600,
                                     T(1) / 47900160,
                                     T(-691) / T(1307674368000.0L),
                                     T(1) / T(74724249600.0L),
                                     T(-3617) / T(10670622842880000.0L),
                                     T(43867) / T(5109094217170944000.0L),
                                     T(-174611) / T(802857662698291200000.0L)};
  T sum = 0, w = q, power = reciprocal_power(w / unit, s);
  for (int k = 1; w < s + 12; ++k) {
    sum += power;
    w = q + static_cast<T>(k);
    power = reciprocal_power(w / unit, s);
    // What is left is less than the next term times 1 + w / (s - 1); both are 0 where powers are.
    const T rest = power * (1 + w / (s - 1));
    if (rest <= sum * std::numeric_limits<T>::epsilon() / 8) return sum + rest / 2;
  }
  T total = T(0.5) + w / (s - 1);
  T factor = s / w;
  for (int k = 0; k < 10; ++k) {
    total += kBernoulli[k] * factor;
    factor *= (s + static_cast<T>(2 * k + 1)) / w * ((s + static_cast<T>(2 * k + 2)) / w);
  }
  return sum + power * total;
}

// For q < 0 and whole s: the terms left of 0 mirrored, and those right of it.
template <class T>
T zeta_left(T s, T q) {
  const T g = std::ceil(q) - q, terms = 1 - std::ceil(q);  // g in (0, 1)
  T mirrored = 0;
  if (terms <= 64) {
    for (T k = 0; k < terms; ++k) mirrored += reciprocal_power(g + k, s);
  } else {
    mirrored = zeta_sum(s, g) - zeta_sum(s, g + terms);
  }
  const T right = zeta_sum(s, 1 - g);
  return std::fmod(s, T(2)) == 0 ? right + mirrored : right - mirrored;
}

// As TensorFlow has it outside the domain: infinite for s = 1 and where a term is, else NaN.
template <class T>
T zeta(T s, T q) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (s == 1) return kInfinity;
  if (!(s > 1) || std::isnan(q)) return std::numeric_limits<T>::quiet_NaN();
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s) || std::isinf(s)) return std::numeric_limits<T>::quiet_NaN();
    return zeta_left(s, q);
  }
  if (std::isinf(q)) return 0;
  if (std::isinf(s)) return q < 1 ? kInfinity : (q == 1 ? 1 : 0);
  return zeta_sum(s, q);
}

// Recurrence up to 24, then the asymptotic series; for x < 0 by reflection.
template <class T>
T digamma(T x) {
  static constexpr T kPi = T(3.14159265358979323846264338327950288L);
  // B_2k / 2k
  static constexpr T kSeries[] = {T(1) / 12,   T(-1) / 120,        T(1) / 252,
                                  T(-1) / 240, T(1) / 132,         T(-691) / T(32760),
                                  T(1) / 12,   T(-3617) / T(8160), T(43867) / T(14364)};
  if (x <= 0) {
    if (x == std::floor(x)) return std::numeric_limits<T>::infinity();
    const T r = x - std::round(x);
    return digamma(1 - x) - kPi / std::tan(kPi * r);
  }
  T sum = 0;
  for (; x < 24; ++x) sum -= 1 / x;
  T series = 0;
  const T u = 1 / (x * x);
  for (int k = 8; k >= 0; --k) series = (series + kSeries[k]) * u;
  return sum + (std::log(x) - T(0.5) / x - series);
}

// (-1)^(n+1) n! zeta(n + 1, x).
template <class T>
T polygamma(T n, T x) {
  if (!(n >= 0) || n != std::floor(n)) return std::numeric_limits<T>::quiet_NaN();
  if (n == 0) return digamma(x);
  const T s = n + 1;
  T size = zeta(s, x);
  constexpr T kMostFactorial = std::numeric_limits<T>::max_exponent > 1024 ? 1700 : 170;
  if (n <= kMostFactorial) {
    for (T k = 2; k <= n; ++k) size *= k;
    const bool finite = std::isfinite(size) && size != 0;
    if (finite || !(x > 0) || std::isinf(x)) return std::fmod(n, T(2)) == 0 ? -size : size;
  }
  if (x > 0 && std::isfinite(x) && std::isfinite(n)) {  // neither the power nor n! alone fits
    size = std::exp(lgamma_of(s) - s * std::log(x)) * zeta_sum(s, x, x);
  }
  return std::fmod(n, T(2)) == 0 ? -size : size;
}

}  // namespace treenail::host
