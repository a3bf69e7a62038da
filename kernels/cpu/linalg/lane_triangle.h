// SPDX-License-Identifier: Apache-2.0
// Schur forms with nothing below the diagonal, one per vector lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/linalg/lane_schur.h"

namespace treenail::cpu {

// The complex form of a real one, by a rotation for each pair. Real eigenvalues stay real numbers,
// and pairs are conjugate to the last bit. (Of one matrix: kernels/eigen/complex_schur.h.)
template <class R>
struct LaneTriangle {
  using L = ComplexVec<R>;
  using V = Vec<R>;
  L t[kMostLaneRows * kMostLaneRows];
  L u[kMostLaneRows * kMostLaneRows];
  Int<V> pair[kMostLaneRows];  // whether element k and the next are one
  int64_t n;

  explicit LaneTriangle(const LaneSchur<std::complex<R>>& schur) : n(schur.n) {
    std::copy_n(schur.a, n * n, t);
    std::copy_n(schur.u, n * n, u);
    std::fill_n(pair, n, Int<V>{});
  }
  explicit LaneTriangle(const LaneSchur<R>& schur) : n(schur.n) {
    std::fill_n(pair, n, Int<V>{});
    for (int64_t i = 0; i < n * n; ++i) t[i] = {schur.a[i], V{}}, u[i] = {schur.u[i], V{}};
    for (int64_t k = 0; k + 1 < n; ++k) {
      const auto block = schur.block(k);
      pair[k] = block.c != V{};
      if (any(pair[k])) turn_pair(k, block);
    }
  }

 private:
  template <class Block>
  void turn_pair(int64_t k, const Block& block) {
    const V half = (block.a - block.d) * splat<V>(0.5), middle = block.d + half;
    const V imaginary = square_root(-mul_add(half, half, block.b * block.c));
    const V length =
        square_root(mul_add(half, half, mul_add(imaginary, imaginary, block.c * block.c)));
    const L c = {half / length, imaginary / length};
    const V s = block.c / length;
    const auto columns = [&](L& x, L& y) {
      const L p = mul_add(x, c, y * s), q = mul_add(y, conjugate(c), -(x * s));
      x = choose(pair[k], p, x);
      y = choose(pair[k], q, y);
    };
    const auto rows = [&](L& x, L& y) {
      const L p = mul_add(conjugate(c), x, y * s), q = mul_add(c, y, -(x * s));
      x = choose(pair[k], p, x);
      y = choose(pair[k], q, y);
    };
    for (int64_t r = 0; r < k + 2; ++r) columns(t[r * n + k], t[r * n + k + 1]);
    for (int64_t i = k; i < n; ++i) rows(t[k * n + i], t[(k + 1) * n + i]);
    for (int64_t r = 0; r < n; ++r) columns(u[r * n + k], u[r * n + k + 1]);
    L* const to = t + k * (n + 1);
    to[0] = choose(pair[k], L{middle, imaginary}, to[0]);
    to[n] = choose(pair[k], L{}, to[n]);
    to[n + 1] = choose(pair[k], L{middle, -imaginary}, to[n + 1]);
  }
};

}  // namespace treenail::cpu
