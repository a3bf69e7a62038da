// SPDX-License-Identifier: Apache-2.0
// A number and its derivative with respect to one variable, which arithmetic carries along: what is
// written for numbers N computes derivatives with N = Dual<T>, and second ones with Dual<Dual<T>>.
#pragma once

#include <cmath>
#include <limits>

namespace treenail::host {

template <class T>
struct Dual {
  T value;
  T slope;
  Dual(T v, T s = T(0)) : value(v), slope(s) {}  // NOLINT(google-explicit-constructor): constants
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

// The number without derivatives.
template <class T>
T value_of(T x) {
  return x;
}
template <class T>
auto value_of(Dual<T> x) {
  return value_of(x.value);
}

// The larger of what matters of a number: none of it may be left out of a sum.
template <class T>
T size_of(T x) {
  return std::fabs(x);
}
template <class T>
auto size_of(Dual<T> x) {
  return std::fmax(size_of(x.value), size_of(x.slope));
}

// Of what a factor differs from 1 by: of the order of rounding errors, of which slopes have more.
template <class T>
bool is_negligible(T x) {
  return std::fabs(x) < 16 * std::numeric_limits<T>::epsilon();
}
template <class T>
bool is_negligible(Dual<T> x) {
  return is_negligible(x.value) && is_negligible(x.slope / T(100000));
}

template <class T>
T exponential(T x) {
  return std::exp(x);
}
template <class T>
Dual<T> exponential(Dual<T> x) {
  const T y = exponential(x.value);
  return {y, y * x.slope};
}

template <class T>
T minus_one_of_exponential(T x) {
  return std::expm1(x);
}
template <class T>
Dual<T> minus_one_of_exponential(Dual<T> x) {
  return {minus_one_of_exponential(x.value), exponential(x.value) * x.slope};
}

template <class T>
T logarithm(T x) {
  return std::log(x);
}
template <class T>
Dual<T> logarithm(Dual<T> x) {
  return {logarithm(x.value), x.slope / x.value};
}

template <class T>
T logarithm_of_one_plus(T x) {
  return std::log1p(x);
}
template <class T>
Dual<T> logarithm_of_one_plus(Dual<T> x) {
  return {logarithm_of_one_plus(x.value), x.slope / (T(1) + x.value)};
}

template <class T>
T root(T x) {
  return std::sqrt(x);
}
template <class T>
Dual<T> root(Dual<T> x) {
  const T y = root(x.value);
  return {y, x.slope / (y + y)};
}

template <class T>
T complementary_error(T x) {
  return std::erfc(x);
}
template <class T>
Dual<T> complementary_error(Dual<T> x) {
  const T slope(-1.12837916709551257389615890312154517L);
  return {complementary_error(x.value), slope * exponential(-(x.value * x.value)) * x.slope};
}

}  // namespace treenail::host
