// SPDX-License-Identifier: Apache-2.0
// Square matrices that are triangular as they are given: their functions are exact in small
// eigenvalues beside large ones, which a Schur form or an exchange of rows would mix.
#pragma once

#include <cstdint>
#include <utility>

namespace treenail::host {

// Column-major.
template <class W>
bool is_upper_triangle(int64_t n, const W* a) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = k + 1; i < n; ++i) {
      if (a[k * n + i] != W(0)) return false;
    }
  }
  return true;
}

template <class W>
bool is_lower_triangle(int64_t n, const W* a) {
  for (int64_t k = 1; k < n; ++k) {
    for (int64_t i = 0; i < k; ++i) {
      if (a[k * n + i] != W(0)) return false;
    }
  }
  return true;
}

template <class W>
void transpose_square(int64_t n, W* a) {
  for (int64_t k = 1; k < n; ++k) {
    for (int64_t i = 0; i < k; ++i) std::swap(a[k * n + i], a[i * n + k]);
  }
}

}  // namespace treenail::host
