// SPDX-License-Identifier: Apache-2.0
// One element of each matrix of a group: a vector where elements are real, two where they are
// complex. An algorithm is written once for both; what a complex number needs beyond a real one
// does nothing to a real one.
#pragma once

#include <complex>

#include "kernels/cpu/simd/complex_vec.h"

namespace treenail::cpu {

template <class T>
struct LaneType {
  using Real = T;
  using Number = Vec<T>;
};
template <class T>
struct LaneType<std::complex<T>> {
  using Real = T;
  using Number = ComplexVec<T>;
};

// Of matrices of Ts: the number in a lane, its parts, the result of a comparison.
template <class T>
using LaneNumber = typename LaneType<T>::Number;
template <class T>
using RealOf = typename LaneType<T>::Real;
template <class T>
using LaneReal = Vec<RealOf<T>>;
template <class T>
using LaneMask = Int<LaneReal<T>>;

template <class T>
inline constexpr bool is_complex_lane = !std::is_same_v<LaneNumber<T>, LaneReal<T>>;
// Matrices in a group.
template <class T>
inline constexpr int kGroup = kLanes<RealOf<T>>;

template <class T>
TN_INLINE LaneNumber<T> from_real(LaneReal<T> x) {
  if constexpr (is_complex_lane<T>) {
    return {x, LaneReal<T>{}};
  } else {
    return x;
  }
}
template <class T>
TN_INLINE LaneNumber<T> constant(RealOf<T> x) {
  return from_real<T>(splat<LaneReal<T>>(x));
}
// Lane l.
template <class V>
TN_INLINE auto element(V x, int64_t l) {
  return x[l];
}
template <class T>
TN_INLINE std::complex<T> element(ComplexVec<T> x, int64_t l) {
  return {x.re[l], x.im[l]};
}

template <class V, class N>
TN_INLINE void set_element(V& x, int64_t l, N value) {
  x[l] = value;
}
template <class T>
TN_INLINE void set_element(ComplexVec<T>& x, int64_t l, std::complex<T> value) {
  x.re[l] = value.real();
  x.im[l] = value.imag();
}

template <class V>
TN_INLINE V real_part(V x) {
  return x;
}
template <class T>
TN_INLINE Vec<T> real_part(ComplexVec<T> x) {
  return x.re;
}
template <class V>
TN_INLINE V conjugate(V x) {
  return x;
}
template <class V>
TN_INLINE V times(V a, V b) {
  return a * b;
}

// |re| + |im|: as good as the absolute value for comparing sizes, and cheaper.
template <class V>
TN_INLINE V size_of(V x) {
  return absolute(x);
}
template <class T>
TN_INLINE Vec<T> size_of(ComplexVec<T> x) {
  return absolute(x.re) + absolute(x.im);
}
// The greater of |re| and |im|.
template <class V>
TN_INLINE V largest_part(V x) {
  return absolute(x);
}
template <class T>
TN_INLINE Vec<T> largest_part(ComplexVec<T> x) {
  return greater_of(absolute(x.re), absolute(x.im));
}
// |x|² + sum.
template <class V>
TN_INLINE V add_square(V x, V sum) {
  return mul_add(x, x, sum);
}
template <class T>
TN_INLINE Vec<T> add_square(ComplexVec<T> x, Vec<T> sum) {
  return mul_add(x.re, x.re, mul_add(x.im, x.im, sum));
}
// sum - |x|².
template <class V>
TN_INLINE V subtract_square(V x, V sum) {
  return mul_add(-x, x, sum);
}
template <class T>
TN_INLINE Vec<T> subtract_square(ComplexVec<T> x, Vec<T> sum) {
  return mul_add(-x.re, x.re, mul_add(-x.im, x.im, sum));
}

// |x|, in range where it is.
template <class V>
TN_INLINE V modulus(V x) {
  return absolute(x);
}
template <class T>
TN_INLINE Vec<T> modulus(ComplexVec<T> x) {
  const Vec<T> largest = largest_part(x);
  const Vec<T> unit = largest == Vec<T>{} ? splat<Vec<T>>(1) : largest;
  return square_root(add_square(x / unit, Vec<T>{})) * unit;
}

template <class V>
TN_INLINE auto is_zero(V x) {
  return x == V{};
}
template <class T>
TN_INLINE Int<Vec<T>> is_zero(ComplexVec<T> x) {
  return (x.re == Vec<T>{}) & (x.im == Vec<T>{});
}
template <class V>
TN_INLINE auto is_real(V) {
  return ~Int<V>{};
}
template <class T>
TN_INLINE Int<Vec<T>> is_real(ComplexVec<T> x) {
  return x.im == Vec<T>{};
}
template <class V, class M>
TN_INLINE V choose(M mask, V a, V b) {
  return mask ? a : b;
}
template <class T, class M>
TN_INLINE ComplexVec<T> choose(M mask, ComplexVec<T> a, ComplexVec<T> b) {
  return {mask ? a.re : b.re, mask ? a.im : b.im};
}

template <class V>
TN_INLINE V reciprocal(V x) {
  return splat<V>(1) / x;
}
// Divided by the larger part first: squares leave the range long before the result does.
template <class T>
TN_INLINE ComplexVec<T> reciprocal(ComplexVec<T> x) {
  const Vec<T> unit = largest_part(x);
  const ComplexVec<T> y = x / unit;
  return conjugate(y) / add_square(y, Vec<T>{}) / unit;
}

}  // namespace treenail::cpu
