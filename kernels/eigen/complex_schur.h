// SPDX-License-Identifier: Apache-2.0
// The complex Schur form of a real matrix from its real one, by a rotation for each pair of complex
// eigenvalues. Real eigenvalues stay real numbers, and pairs are conjugate to the last bit.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

namespace treenail::eigen {

// Whether a real Schur form has blocks on its diagonal.
inline bool has_pairs(int64_t n, const double* t) {
  for (int64_t k = 0; k + 1 < n; ++k) {
    if (t[k * (n + 1) + 1] != 0) return true;
  }
  return false;
}

// A unitary matrix [c, -s; s, conj(c)].
struct Rotation {
  std::complex<double> c;
  double s;
  // Two columns times it.
  void turn_columns(int64_t count, std::complex<double>* x, std::complex<double>* y) const {
    for (int64_t i = 0; i < count; ++i) {
      const std::complex<double> first = x[i], second = y[i];
      x[i] = first * c + second * s;
      y[i] = second * std::conj(c) - first * s;
    }
  }
  // Its adjoint times two rows, one below the other; from one column to the next: `stride`.
  void turn_rows(int64_t count, int64_t stride, std::complex<double>* x) const {
    for (int64_t i = 0; i < count; ++i, x += stride) {
      const std::complex<double> first = x[0], second = x[1];
      x[0] = std::conj(c) * first + s * second;
      x[1] = c * second - s * first;
    }
  }
};

// The eigenvalues of a block of 2 x 2, whose first column is [a, below] and second [above, d].
struct BlockValues {
  std::complex<double> first, second;
  BlockValues(double a, double below, double above, double d) {
    const double half = (a - d) / 2, middle = d + half, square = half * half + above * below;
    if (square < 0) {
      first = {middle, std::sqrt(-square)};
      second = std::conj(first);
    } else {
      const double root = std::copysign(std::sqrt(square), half);
      first = middle + root;
      second = middle - root;
    }
  }
};

// a = u t u^T of real numbers, as complex ones with t upper triangular.
inline void complex_schur(int64_t n, const double* real_t, const double* real_u,
                          std::complex<double>* t, std::complex<double>* u) {
  for (int64_t i = 0; i < n * n; ++i) t[i] = real_t[i], u[i] = real_u[i];
  for (int64_t k = 0; k + 1 < n; ++k) {
    const double below = real_t[k * (n + 1) + 1];
    if (below == 0) continue;
    const double d = real_t[(k + 1) * (n + 1)];
    const BlockValues values(real_t[k * (n + 1)], below, real_t[(k + 1) * (n + 1) - 1], d);
    const std::complex<double> across = values.first - d;
    const double length = std::hypot(across.real(), across.imag(), below);
    const Rotation q = {across / length, below / length};
    q.turn_columns(k + 2, t + k * n, t + (k + 1) * n);
    q.turn_rows(n - k, n, t + k * (n + 1));
    q.turn_columns(n, u + k * n, u + (k + 1) * n);
    t[k * (n + 1)] = values.first;
    t[k * (n + 1) + 1] = 0;
    t[(k + 1) * (n + 1)] = values.second;
  }
}

}  // namespace treenail::eigen
