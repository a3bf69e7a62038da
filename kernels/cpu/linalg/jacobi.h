// SPDX-License-Identifier: Apache-2.0
// Plane rotations of Jacobi's method, one matrix per vector lane. A lane that needs none keeps its
// bits, so that a matrix has the same results whatever its neighbours need.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

inline constexpr int kMostSweeps = 40;  // ten are many
template <class T>
inline constexpr T kRounding = std::numeric_limits<T>::epsilon();

template <class T>
struct Rotation {
  Int<Vec<T>> active;
  Vec<T> cosine, sine, tangent;

  // That makes (p, between; between, q) diagonal, where `active`. (Golub and Van Loan, Matrix
  // Computations, 8.5.2.)
  Rotation(Int<Vec<T>> where, Vec<T> p, Vec<T> between, Vec<T> q) : active(where) {
    const Vec<T> one = splat<Vec<T>>(1);
    const Vec<T> safe = active ? between : one;
    const Vec<T> theta = (q - p) / (safe + safe);
    const Vec<T> size = absolute(theta) + square_root(mul_add(theta, theta, one));
    tangent = copy_sign(one / size, theta);
    cosine = one / square_root(mul_add(tangent, tangent, one));
    sine = tangent * cosine;
  }

  void turn(Vec<T>& x, Vec<T>& y) const {
    const Vec<T> a = cosine * x - sine * y, b = sine * x + cosine * y;
    x = active ? a : x;
    y = active ? b : y;
  }
};

// The largest absolute value, and which lanes hold NaN or infinity.
template <class T>
Vec<T> largest_of(const Vec<T>* a, int64_t count, Int<Vec<T>>* not_finite) {
  Vec<T> largest = Vec<T>{}, nothing = Vec<T>{};
  for (int64_t i = 0; i < count; ++i) {
    largest = greater_of(absolute(a[i]), largest);
    nothing += a[i] * Vec<T>{};
  }
  *not_finite = nothing != Vec<T>{};
  return largest;
}

template <class T>
void set_identity(Vec<T>* v, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i) v[i] = splat<Vec<T>>(i % (n + 1) == 0 ? 1 : 0);
}

template <class V, class M>
TN_INLINE void exchange_where(M mask, V& a, V& b) {
  const V was = a;
  a = mask ? b : a;
  b = mask ? was : b;
}

}  // namespace treenail::cpu
