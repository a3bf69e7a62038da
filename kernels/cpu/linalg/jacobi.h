// SPDX-License-Identifier: Apache-2.0
// Plane rotations of Jacobi's method, one matrix per vector lane. A lane that needs none keeps its
// bits, so that a matrix has the same results whatever its neighbours need.
#pragma once

#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

inline constexpr int kMostSweeps = 40;  // ten are many

template <class T>
struct Rotation {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  LaneMask<T> active;
  R between;  // what is eliminated, turned real
  R cosine, sine, tangent;

  // That makes (p, corner; conj(corner), q) diagonal, where `active`. (Golub and Van Loan, Matrix
  // Computations, 8.5.2.) Of complex numbers the second ones are first given the phase that makes
  // the corner real.
  Rotation(LaneMask<T> where, R p, L corner, R q) : active(where), between(make_real(corner)) {
    const R one = splat<R>(1);
    const R safe = active ? between : one;
    const R theta = (q - p) / (safe + safe);
    const R size = absolute(theta) + square_root(mul_add(theta, theta, one));
    tangent = copy_sign(one / size, theta);
    cosine = one / square_root(mul_add(tangent, tangent, one));
    sine = tangent * cosine;
  }

  void turn(L& x, L& y) const {
    L turned = y;
    if constexpr (is_complex_lane<T>) turned = times(y, phase_);
    const L a = x * cosine - turned * sine, b = x * sine + turned * cosine;
    x = choose(active, a, x);
    y = choose(active, b, y);
  }

 private:
  L phase_;

  R make_real(L corner) {
    if constexpr (is_complex_lane<T>) {
      const R size = square_root(add_square(corner, R{}));
      phase_ = conjugate(corner) / size;
      return size;
    } else {
      return corner;
    }
  }
};

}  // namespace treenail::cpu
