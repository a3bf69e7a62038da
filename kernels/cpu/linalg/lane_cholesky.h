// SPDX-License-Identifier: Apache-2.0
// Cholesky factors and substitution in small triangular matrices, one per vector lane.
#pragma once

#include <cstdint>

#include "kernels/cpu/linalg/lanes.h"

namespace treenail::cpu {

// Groups of matrices become their lower factors, column by column, with zeros above; set lanes of
// `failed` are not positive definite. Two are faster than one after the other, since a square root
// has to wait for the one before.
template <class T, int kGroups>
void factor(LaneNumber<T>* const (&group)[kGroups], int64_t n, LaneMask<T> (&failed)[kGroups]) {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  for (LaneMask<T>& lanes : failed) lanes = LaneMask<T>{};
  for (int64_t j = 0; j < n; ++j) {
    R inverse[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      L* const row = group[g] + j * n;
      R pivot = real_part(row[j]);
      for (int64_t k = 0; k < j; ++k) pivot = subtract_square(row[k], pivot);
      failed[g] |= ~(pivot > R{});
      const R root = square_root(pivot);
      row[j] = from_real<T>(root);
      inverse[g] = splat<R>(1) / root;
    }
    for (int64_t i = j + 1; i < n; ++i) {
      for (int g = 0; g < kGroups; ++g) {
        L* const row = group[g] + i * n;
        const L* const above = group[g] + j * n;
        L sum = row[j];
        for (int64_t k = 0; k < j; ++k) sum = mul_add(-row[k], conjugate(above[k]), sum);
        row[j] = sum * inverse[g];
        group[g][j * n + i] = L{};
      }
    }
  }
}

// x becomes a^-1 x by substitution, from the first row on where a is lower, else from the last.
template <class T>
LaneMask<T> substitute(const LaneNumber<T>* a, bool lower, int64_t n, int64_t k, LaneNumber<T>* x) {
  using L = LaneNumber<T>;
  LaneMask<T> singular = {};
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    const int64_t from = lower ? 0 : i + 1, to = lower ? i : n;
    const L pivot = a[i * n + i], inverse = reciprocal(pivot);
    singular |= is_zero(pivot);
    for (int64_t c = 0; c < k; ++c) {
      L sum = x[i * k + c];
      for (int64_t j = from; j < to; ++j) sum = mul_add(-a[i * n + j], x[j * k + c], sum);
      x[i * k + c] = times(sum, inverse);
    }
  }
  return singular;
}

}  // namespace treenail::cpu
