// SPDX-License-Identifier: Apache-2.0
// Householder's reflections I - tau v v^H, one per vector lane, real or complex as LAPACK's larfg.
#pragma once

#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

template <class T>
struct Reflection {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  L tau;
  L first;  // what is left of x, in its first element; real

  // Of x, `count` numbers that are `stride` apart. Of v, whose first element is 1, the others take
  // the place of those of x. Divided by the largest part first, so that squares stay in range.
  Reflection(L* x, int64_t stride, int64_t count) {
    R largest = largest_part(x[0]), rest = R{};
    for (int64_t i = 1; i < count; ++i) largest = greater_of(largest_part(x[i * stride]), largest);
    const R unit = largest == R{} ? splat<R>(1) : largest;
    for (int64_t i = 1; i < count; ++i) {
      const L y = x[i * stride] / unit;
      x[i * stride] = y;
      rest = add_square(y, rest);
    }
    const L was = x[0] / unit;
    const R norm = square_root(add_square(was, rest));
    const R other = -copy_sign(norm, real_part(was));
    const auto nothing = (rest == R{}) & is_real(was);
    tau = choose(nothing, L{}, (from_real<T>(other) - was) / other);
    const L scale = choose(nothing, L{}, reciprocal(was - from_real<T>(other)));
    for (int64_t i = 1; i < count; ++i) x[i * stride] = times(x[i * stride], scale);
    first = from_real<T>((nothing ? real_part(was) : other) * unit);
  }
};

// y - tau v v^H y for a column y.
template <class L>
TN_INLINE void reflect_column(const L* v, int64_t v_stride, int64_t count, L tau, L* y,
                              int64_t stride) {
  L sum = y[0];
  for (int64_t i = 1; i < count; ++i) {
    sum = mul_add(conjugate(v[i * v_stride]), y[i * stride], sum);
  }
  sum = times(sum, tau);
  y[0] = y[0] - sum;
  for (int64_t i = 1; i < count; ++i) {
    y[i * stride] = mul_add(-v[i * v_stride], sum, y[i * stride]);
  }
}

// y - tau y v v^H for a row y.
template <class L>
TN_INLINE void reflect_row(const L* v, int64_t v_stride, int64_t count, L tau, L* y) {
  L sum = y[0];
  for (int64_t i = 1; i < count; ++i) sum = mul_add(v[i * v_stride], y[i], sum);
  sum = times(sum, tau);
  y[0] = y[0] - sum;
  for (int64_t i = 1; i < count; ++i) y[i] = mul_add(-conjugate(v[i * v_stride]), sum, y[i]);
}

}  // namespace treenail::cpu
