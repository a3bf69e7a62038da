// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering F(Out, Taps): matrices, and the transforms of one tile, a vector of
// channels at a time.
//   output = A^T [ (G filter G^T) . (B^T input B) ] A         tiles of kSize = Out + Taps - 1
//   points
// The matrices follow from interpolation points: 0, pairs +-p, and infinity. A pair shares its even
// and odd parts, which halves the work of every transform. Source: Lavin and Gray, Fast Algorithms
// for Convolutional Neural Networks, 2015; the points of 6-point tiles keep the error 2.3 to 4
// times smaller than 1, 2 (performance measurements). Users: winograd*.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

template <int kOut, int kTaps>
struct Winograd {
  static constexpr int kSize = kOut + kTaps - 1;
  static constexpr int kPairs = (kSize - 2) / 2;
  static constexpr int kPoints = kSize * kSize;
  static_assert(kSize == 6 || kSize == 8);

  struct Matrices {
    double bt[kSize][kSize] = {};
    double at[kOut][kSize] = {};
    double g[kSize][kTaps] = {};
  };

  static constexpr std::array<double, kSize - 1> points() {
    if constexpr (kSize == 6) {
      return {0, 0.625, -0.625, 1.25, -1.25};
    } else {
      return {0, 1, -1, 2, -2, 0.5, -0.5};
    }
  }

  static constexpr Matrices make() {
    Matrices m;
    const auto p = points();
    constexpr int last = kSize - 1;  // the point at infinity
    for (int j = 0; j < kSize; ++j) {
      // Row j of B^T: the coefficients of the product of (x - p_l) over the other finite points.
      double c[kSize + 1] = {1};
      int degree = 0;
      double scale = 1;
      for (int l = 0; l < last; ++l) {
        if (l == j) continue;
        for (int d = degree + 1; d > 0; --d) c[d] = c[d - 1] - p[l] * c[d];
        c[0] *= -p[l];
        ++degree;
        if (j < last) scale *= p[j] - p[l];
      }
      double largest = 0;
      for (int k = 0; k <= degree; ++k) {
        m.bt[j][k] = c[k];
        largest = std::max(largest, c[k] < 0 ? -c[k] : c[k]);
      }
      for (int i = 0; i < kOut; ++i)
        m.at[i][j] = j == last ? (i == kOut - 1 ? 1 : 0) : power(p[j], i);
      for (int k = 0; k < kTaps; ++k)
        m.g[j][k] = j == last ? (k == kTaps - 1 ? 1 : 0) : power(p[j], k) / scale;
      // A power of two moves from B^T to G, exactly, so that neither has large entries.
      double factor = 1;
      while (largest * factor > 6) factor *= 0.5;
      while (largest * factor < 1) factor *= 2;
      for (int k = 0; k < kSize; ++k) m.bt[j][k] *= factor;
      for (int k = 0; k < kTaps; ++k) m.g[j][k] /= factor;
    }
    return m;
  }
  static constexpr double power(double x, int n) {
    double y = 1;
    for (int i = 0; i < n; ++i) y *= x;
    return y;
  }
  static constexpr Matrices kMatrices = make();

  // Matrices by name, as template arguments.
  static constexpr double bt(int i, int j) { return kMatrices.bt[i][j]; }
  static constexpr double at(int i, int j) { return kMatrices.at[i][j]; }
  static constexpr double a(int i, int j) { return kMatrices.at[j][i]; }
  static constexpr double g(int i, int j) { return kMatrices.g[i][j]; }
  static constexpr double gt(int i, int j) { return kMatrices.g[j][i]; }

  using Entry = double (*)(int, int);

  // The first k < in of one parity (0, 1), or any (-1), where a row's entry is not zero; `in` when
  // there is none.
  static constexpr int first_entry(Entry entry, int row, int in, int parity) {
    for (int k = 0; k < in; ++k) {
      if ((parity < 0 || k % 2 == parity) && entry(row, k) != 0) return k;
    }
    return in;
  }

  // The sum of entry(row, k) * in[k] over those k.
  template <Entry kEntry, int kRow, int kIn, int kParity>
  static TN_INLINE VecF dot(const VecF* in) {
    VecF sum{};
    unroll<kIn>([&](auto k) __attribute__((always_inline)) {
      constexpr float c = static_cast<float>(kEntry(kRow, k.value));
      if constexpr (c != 0 && (kParity < 0 || k.value % 2 == kParity)) {
        if constexpr (first_entry(kEntry, kRow, kIn, kParity) == k.value) {
          sum = c == 1 ? in[k.value] : in[k.value] * c;
        } else if constexpr (c == 1) {
          sum += in[k.value];
        } else {
          sum = mul_add(in[k.value], splat<VecF>(c), sum);
        }
      }
    });
    return sum;
  }

  // out = matrix * in for B^T, A and G (kSize rows): rows 2q + 1 and 2q + 2 are the pair of points.
  template <Entry kEntry, int kIn>
  static TN_INLINE void to_points(const VecF* in, VecF* out) {
    out[0] = dot<kEntry, 0, kIn, -1>(in);
    out[kSize - 1] = dot<kEntry, kSize - 1, kIn, -1>(in);
    unroll<kPairs>([&](auto q) __attribute__((always_inline)) {
      constexpr int j = 1 + 2 * q.value;
      constexpr int even_entry = first_entry(kEntry, j, kIn, 0);
      constexpr bool even_negated =
          even_entry < kIn && kEntry(j, even_entry) != kEntry(j + 1, even_entry);
      const VecF even = dot<kEntry, j, kIn, 0>(in), odd = dot<kEntry, j, kIn, 1>(in);
      out[j] = even + odd;
      out[j + 1] = even_negated ? odd - even : even - odd;
    });
  }

  // out = matrix * in for A^T and G^T (kSize columns): columns 2q + 1 and 2q + 2 are the pair,
  // equal or opposite.
  template <Entry kEntry, int kRows>
  static TN_INLINE void from_points(const VecF* in, VecF* out) {
    VecF sums[kPairs], differences[kPairs];
    unroll<kPairs>([&](auto q) __attribute__((always_inline)) {
      sums[q.value] = in[1 + 2 * q.value] + in[2 + 2 * q.value];
      differences[q.value] = in[1 + 2 * q.value] - in[2 + 2 * q.value];
    });
    unroll<kRows>([&](auto i) __attribute__((always_inline)) {
      VecF sum{};
      auto add = [&]<int kColumn>(std::integral_constant<int, kColumn>, VecF x)
          __attribute__((always_inline)) {
        constexpr float c = static_cast<float>(kEntry(i.value, kColumn));
        if constexpr (c != 0) sum = mul_add(x, splat<VecF>(c), sum);
      };
      add(std::integral_constant<int, 0>{}, in[0]);
      unroll<kPairs>([&](auto q) __attribute__((always_inline)) {
        constexpr int j = 1 + 2 * q.value;
        constexpr bool equal = kEntry(i.value, j) == kEntry(i.value, j + 1);
        add(std::integral_constant<int, j>{}, equal ? sums[q.value] : differences[q.value]);
      });
      add(std::integral_constant<int, kSize - 1>{}, in[kSize - 1]);
      out[i.value] = sum;
    });
  }

  // to = matrix * from * matrix^T for a square of kIn x kIn points, rows `row` and columns `column`
  // elements apart; result point (i, j) goes to to[(i * kSize + j) * step].
  template <Entry kEntry, int kIn>
  static TN_INLINE void square_to_points(const float* from, int64_t row, int64_t column, float* to,
                                         int64_t step) {
    VecF half[kSize][kIn];
    for (int j = 0; j < kIn; ++j) {
      VecF in[kIn], out[kSize];
      for (int i = 0; i < kIn; ++i) in[i] = load<VecF>(from + i * row + j * column);
      to_points<kEntry, kIn>(in, out);
      for (int i = 0; i < kSize; ++i) half[i][j] = out[i];
    }
    for (int i = 0; i < kSize; ++i) {
      VecF out[kSize];
      to_points<kEntry, kIn>(half[i], out);
      for (int j = 0; j < kSize; ++j) store(to + (i * kSize + j) * step, out[j]);
    }
  }

  // The way back: kRows x kRows results; f(i, j, vector) receives them.
  template <Entry kEntry, int kRows, class F>
  static TN_INLINE void square_from_points(const float* from, int64_t step, F f) {
    VecF half[kRows][kSize];
    for (int j = 0; j < kSize; ++j) {
      VecF in[kSize], out[kRows];
      for (int i = 0; i < kSize; ++i) in[i] = load<VecF>(from + (i * kSize + j) * step);
      from_points<kEntry, kRows>(in, out);
      for (int i = 0; i < kRows; ++i) half[i][j] = out[i];
    }
    for (int i = 0; i < kRows; ++i) {
      VecF out[kRows];
      from_points<kEntry, kRows>(half[i], out);
      for (int j = 0; j < kRows; ++j) f(i, j, out[j]);
    }
  }
};

}  // namespace treenail::cpu
