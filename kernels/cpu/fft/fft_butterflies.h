// SPDX-License-Identifier: Apache-2.0
// Transforms of a few complex vectors in registers: y[k] = sum over j of x[j] e^(-2 pi i j k / r),
// in place.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/cpu/fft/fft_roots.h"
#include "kernels/cpu/fft/fft_rows.h"

namespace treenail::cpu {

// a - i b and a + i b.
template <class T>
TN_INLINE ComplexVec<T> minus_i(ComplexVec<T> a, ComplexVec<T> b) {
  return {a.re + b.im, a.im - b.re};
}
template <class T>
TN_INLINE ComplexVec<T> plus_i(ComplexVec<T> a, ComplexVec<T> b) {
  return {a.re - b.im, a.im + b.re};
}
// a + s b for a real s.
template <class T>
TN_INLINE ComplexVec<T> plus_times(ComplexVec<T> a, T s, ComplexVec<T> b) {
  const Vec<T> v = splat<Vec<T>>(s);
  return {mul_add(v, b.re, a.re), mul_add(v, b.im, a.im)};
}
template <class T>
TN_INLINE ComplexVec<T> scaled(T s, ComplexVec<T> a) {
  const Vec<T> v = splat<Vec<T>>(s);
  return {v * a.re, v * a.im};
}

template <class T>
TN_INLINE void butterfly2(ComplexVec<T>* x) {
  const ComplexVec<T> a = x[0], b = x[1];
  x[0] = a + b;
  x[1] = a - b;
}

template <class T>
TN_INLINE void butterfly3(ComplexVec<T>* x) {
  constexpr T kSine = static_cast<T>(std::numbers::sqrt3 / 2);
  const ComplexVec<T> sum = x[1] + x[2], s = scaled<T>(kSine, x[1] - x[2]);
  const ComplexVec<T> m = plus_times<T>(x[0], T(-0.5), sum);
  x[0] = x[0] + sum;
  x[1] = minus_i<T>(m, s);
  x[2] = plus_i<T>(m, s);
}

template <class T>
TN_INLINE void butterfly4(ComplexVec<T>& x0, ComplexVec<T>& x1, ComplexVec<T>& x2,
                          ComplexVec<T>& x3) {
  const ComplexVec<T> a = x0 + x2, b = x0 - x2, c = x1 + x3, d = x1 - x3;
  x0 = a + c;
  x1 = minus_i<T>(b, d);
  x2 = a - c;
  x3 = plus_i<T>(b, d);
}

template <class T>
TN_INLINE void butterfly5(ComplexVec<T>* x) {
  constexpr T c1 = static_cast<T>(0.30901699437494742410),
              c2 = static_cast<T>(-0.80901699437494742410);
  constexpr T s1 = static_cast<T>(0.95105651629515357212),
              s2 = static_cast<T>(0.58778525229247312917);
  const ComplexVec<T> a = x[1] + x[4], b = x[2] + x[3], d = x[1] - x[4], e = x[2] - x[3];
  const ComplexVec<T> m1 = plus_times<T>(plus_times<T>(x[0], c1, a), c2, b);
  const ComplexVec<T> m2 = plus_times<T>(plus_times<T>(x[0], c2, a), c1, b);
  const ComplexVec<T> r1 = plus_times<T>(scaled<T>(s1, d), s2, e);
  const ComplexVec<T> r2 = plus_times<T>(scaled<T>(s2, d), -s1, e);
  x[0] = x[0] + a + b;
  x[1] = minus_i<T>(m1, r1);
  x[4] = plus_i<T>(m1, r1);
  x[2] = minus_i<T>(m2, r2);
  x[3] = plus_i<T>(m2, r2);
}

template <class T>
TN_INLINE void butterfly8(ComplexVec<T>* x) {
  constexpr T kHalfRoot = static_cast<T>(std::numbers::sqrt2 / 2);
  butterfly4<T>(x[0], x[2], x[4], x[6]);
  butterfly4<T>(x[1], x[3], x[5], x[7]);
  const ComplexVec<T> e0 = x[0], e1 = x[2], e2 = x[4], e3 = x[6];
  const ComplexVec<T> o0 = x[1], o2 = x[5];
  const ComplexVec<T> o1 = scaled<T>(kHalfRoot, {x[3].re + x[3].im, x[3].im - x[3].re});
  const ComplexVec<T> o3 = scaled<T>(kHalfRoot, {x[7].im - x[7].re, -(x[7].re + x[7].im)});
  x[0] = e0 + o0;
  x[4] = e0 - o0;
  x[1] = e1 + o1;
  x[5] = e1 - o1;
  x[2] = minus_i<T>(e2, o2);
  x[6] = plus_i<T>(e2, o2);
  x[3] = e3 + o3;
  x[7] = e3 - o3;
}

template <class T, int kRadix>
TN_INLINE void butterfly(ComplexVec<T>* x) {
  if constexpr (kRadix == 2) butterfly2<T>(x);
  if constexpr (kRadix == 3) butterfly3<T>(x);
  if constexpr (kRadix == 4) butterfly4<T>(x[0], x[1], x[2], x[3]);
  if constexpr (kRadix == 5) butterfly5<T>(x);
  if constexpr (kRadix == 8) butterfly8<T>(x);
}

// Any odd radix; roots[j]: e^(-2 pi i j / radix).
template <class T>
TN_INLINE void butterfly_odd(ComplexVec<T>* x, int radix, const T* roots) {
  constexpr int kMost = 32;
  ComplexVec<T> sums[kMost / 2], differences[kMost / 2];
  const int half = radix / 2;
  ComplexVec<T> total = x[0];
  for (int j = 1; j <= half; ++j) {
    sums[j - 1] = x[j] + x[radix - j];
    differences[j - 1] = x[j] - x[radix - j];
    total = total + sums[j - 1];
  }
  const ComplexVec<T> first = x[0];
  x[0] = total;
  for (int k = 1; k <= half; ++k) {
    ComplexVec<T> m = first, r = {};
    int at = 0;
    for (int j = 0; j < half; ++j) {
      at += k;
      if (at >= radix) at -= radix;
      m = plus_times<T>(m, roots[2 * at], sums[j]);
      r = plus_times<T>(r, -roots[2 * at + 1], differences[j]);
    }
    x[k] = minus_i<T>(m, r);
    x[radix - k] = plus_i<T>(m, r);
  }
}

}  // namespace treenail::cpu
