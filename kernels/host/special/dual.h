// SPDX-License-Identifier: Apache-2.0
// A number and its derivative with respect to one variable, which arithmetic carries along: what is
// written for numbers N computes derivatives with N = Dual<T>.
#pragma once

#include <cmath>
#include <limits>

namespace treenail::host {

template <class T>
struct Dual {
  T value;
  T slope;
  Dual(T v, T s = 0) : value(v), slope(s) {}  // NOLINT(google-explicit-constructor): constants
  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(Dual a, Dual b) {
    const T q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
};

template <class T>
T value_of(T x) {
  return x;
}
template <class T>
T value_of(Dual<T> x) {
  return x.value;
}

// The larger of what matters of a number: none of it may be left out of a sum.
template <class T>
T size_of(T x) {
  return std::fabs(x);
}
template <class T>
T size_of(Dual<T> x) {
  return std::fmax(std::fabs(x.value), std::fabs(x.slope));
}

// Of what a factor differs from 1 by: of the order of rounding errors, of which slopes have more.
template <class T>
bool is_negligible(T x) {
  return std::fabs(x) < 16 * std::numeric_limits<T>::epsilon();
}
template <class T>
bool is_negligible(Dual<T> x) {
  return is_negligible(x.value) && is_negligible(x.slope / 100000);
}

// f(x) where f has that value and that derivative at x.
template <class T>
T chain(T, T value, T) {
  return value;
}
template <class T>
Dual<T> chain(Dual<T> x, T value, T derivative) {
  return {value, derivative * x.slope};
}

template <class N>
N exponential(N x) {
  const auto y = std::exp(value_of(x));
  return chain(x, y, y);
}
template <class N>
N minus_one_of_exponential(N x) {
  const auto v = value_of(x);
  return chain(x, std::expm1(v), std::exp(v));
}
template <class N>
N logarithm(N x) {
  const auto v = value_of(x);
  return chain(x, std::log(v), 1 / v);
}
template <class N>
N logarithm_of_one_plus(N x) {
  const auto v = value_of(x);
  return chain(x, std::log1p(v), 1 / (1 + v));
}
template <class N>
N root(N x) {
  const auto y = std::sqrt(value_of(x));
  return chain(x, y, 1 / (2 * y));
}
template <class N>
N complementary_error(N x) {
  using T = decltype(value_of(x));
  const T v = value_of(x), slope = T(-1.12837916709551257389615890312154517L);
  return chain(x, std::erfc(v), slope * std::exp(-v * v));
}

}  // namespace treenail::host
