// SPDX-License-Identifier: Apache-2.0
// The loops behind row_fn(), for the files that instantiate them.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/half_tiles.h"
#include "kernels/cpu/row_ops.h"

namespace treenail::cpu {

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class Op, class T>
void row_loop(void* to_bytes, const void* from_bytes, int64_t n, bool one) {
  T* to = static_cast<T*>(to_bytes);
  const T* from = static_cast<const T*>(from_bytes);
  if constexpr (is_half_type<T>) {
    constexpr int64_t kTile = 256;
    float a[kTile];
    float b[kTile];
    if (one) {
      widen(from, b, 1);
      std::fill(b + 1, b + kTile, b[0]);
    }
    for (int64_t begin = 0; begin < n; begin += kTile) {
      const int64_t size = std::min(kTile, n - begin);
      widen(to + begin, a, size);
      if (!one) widen(from + begin, b, size);
      for (int64_t i = 0; i < size; ++i) a[i] = Op::apply(a[i], b[i]);
      narrow(a, to + begin, size);
    }
  } else if (one) {
    const T value = *from;
    for (int64_t i = 0; i < n; ++i) to[i] = Op::apply(to[i], value);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Op::apply(to[i], from[i]);
  }
}

}  // namespace treenail::cpu
