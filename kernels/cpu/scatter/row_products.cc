// SPDX-License-Identifier: Apache-2.0
// Products, minima and maxima of rows.
#include <complex>

#include "kernels/cpu/scatter/row_loops.h"

namespace treenail::cpu {
namespace {

struct Times {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // Unsigned and at least as wide as int: products wrap.
      using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    } else {
      return a * b;
    }
  }
};

// As NumPy: a NaN on either side stays.
struct Least {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a < b || a != a ? a : b;
    } else {
      return a < b ? a : b;
    }
  }
};
struct Greatest {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a > b || a != a ? a : b;
    } else {
      return a > b ? a : b;
    }
  }
};

template <class Op>
RowFn ordered_fn(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return row_loop<Op, int8_t>;
    case DType::kUInt8:
      return row_loop<Op, uint8_t>;
    case DType::kInt16:
      return row_loop<Op, int16_t>;
    case DType::kUInt16:
      return row_loop<Op, uint16_t>;
    case DType::kInt32:
      return row_loop<Op, int32_t>;
    case DType::kUInt32:
      return row_loop<Op, uint32_t>;
    case DType::kInt64:
      return row_loop<Op, int64_t>;
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
    default:
      throw_dtype_not_handled(dtype);
  }
}

}  // namespace

RowFn multiply_fn(DType dtype) { return wrapping_fn<Times>(dtype); }

RowFn order_fn(RowOp op, DType dtype) {
  return op == RowOp::kMinimum ? ordered_fn<Least>(dtype) : ordered_fn<Greatest>(dtype);
}

}  // namespace treenail::cpu
