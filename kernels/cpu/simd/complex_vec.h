// SPDX-License-Identifier: Apache-2.0
// Complex numbers in two vectors, one of real and one of imaginary parts.
#pragma once

#include <limits>

#include "kernels/cpu/simd/vec_fma.h"

namespace treenail::cpu {

template <class T>
struct ComplexVec {
  Vec<T> re, im;
};

template <class T>
TN_INLINE ComplexVec<T> operator+(ComplexVec<T> a, ComplexVec<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
TN_INLINE ComplexVec<T> operator-(ComplexVec<T> a, ComplexVec<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
TN_INLINE ComplexVec<T> operator-(ComplexVec<T> a) {
  return {-a.re, -a.im};
}
template <class T>
TN_INLINE ComplexVec<T> operator*(ComplexVec<T> a, Vec<T> b) {
  return {a.re * b, a.im * b};
}
template <class T>
TN_INLINE ComplexVec<T> operator/(ComplexVec<T> a, Vec<T> b) {
  return {a.re / b, a.im / b};
}

template <class T>
TN_INLINE ComplexVec<T> times(ComplexVec<T> a, ComplexVec<T> b) {
  return {mul_add(a.re, b.re, -(a.im * b.im)), mul_add(a.re, b.im, a.im * b.re)};
}
// a * b + c.
template <class T>
TN_INLINE ComplexVec<T> mul_add(ComplexVec<T> a, ComplexVec<T> b, ComplexVec<T> c) {
  return {mul_add(-a.im, b.im, mul_add(a.re, b.re, c.re)),
          mul_add(a.im, b.re, mul_add(a.re, b.im, c.im))};
}
// With a real part of at least 0, real where a is real and positive. Divided by a square first, so
// that squares stay in range.
template <class T>
TN_INLINE ComplexVec<T> square_root(ComplexVec<T> a) {
  const Vec<T> least = splat<Vec<T>>(std::numeric_limits<T>::min());
  const Vec<T> largest = greater_of(greater_of(absolute(a.re), absolute(a.im)), least);
  const Vec<T> unit = power_of_two(square_root(largest));
  a = a / (unit * unit);
  const Vec<T> size = square_root(mul_add(a.re, a.re, a.im * a.im));
  const Vec<T> root = square_root((size + absolute(a.re)) * splat<Vec<T>>(T(0.5)));
  const Vec<T> half = absolute(a.im) / (root + root), other = root > Vec<T>{} ? half : Vec<T>{};
  const auto right = a.re >= Vec<T>{};
  return {(right ? root : other) * unit, copy_sign(right ? other : root, a.im) * unit};
}
template <class T>
TN_INLINE ComplexVec<T> conjugate(ComplexVec<T> a) {
  return {a.re, -a.im};
}

}  // namespace treenail::cpu
