// SPDX-License-Identifier: Apache-2.0
// The loops behind row_fn(), for the files that instantiate them.
#pragma once

#include <algorithm>
#include <complex>
#include <type_traits>

#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/scatter/row_ops.h"

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

// For ops that wrap: integers of one size share a loop, whatever their sign.
template <class Op>
RowFn wrapping_fn(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8:
      return row_loop<Op, uint8_t>;
    case DType::kInt16:
    case DType::kUInt16:
      return row_loop<Op, uint16_t>;
    case DType::kInt32:
    case DType::kUInt32:
      return row_loop<Op, uint32_t>;
    case DType::kInt64:
    case DType::kUInt64:
      return row_loop<Op, uint64_t>;
    case DType::kFloat32:
      return row_loop<Op, float>;
    case DType::kFloat64:
      return row_loop<Op, double>;
    case DType::kFloat16:
      return row_loop<Op, Float16>;
    case DType::kBFloat16:
      return row_loop<Op, BFloat16>;
    case DType::kComplex64:
      return row_loop<Op, std::complex<float>>;
    case DType::kComplex128:
      return row_loop<Op, std::complex<double>>;
    default:
      throw_dtype_not_handled(dtype);
  }
}

}  // namespace treenail::cpu
