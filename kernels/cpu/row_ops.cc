// SPDX-License-Identifier: Apache-2.0
// Sums and differences of rows, and the walk over indices. Signed integers share the unsigned loops: sums wrap alike.
#include "kernels/cpu/row_ops.h"

#include <complex>

#include "kernels/cpu/row_loops.h"

namespace treenail::cpu {
namespace {

struct Plus {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Minus {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a - b);
  }
};

template <class Op>
RowFn sum_fn(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8: return row_loop<Op, uint8_t>;
    case DType::kInt16:
    case DType::kUInt16: return row_loop<Op, uint16_t>;
    case DType::kInt32:
    case DType::kUInt32: return row_loop<Op, uint32_t>;
    case DType::kInt64:
    case DType::kUInt64: return row_loop<Op, uint64_t>;
    case DType::kFloat32: return row_loop<Op, float>;
    case DType::kFloat64: return row_loop<Op, double>;
    case DType::kFloat16: return row_loop<Op, Float16>;
    case DType::kBFloat16: return row_loop<Op, BFloat16>;
    case DType::kComplex64: return row_loop<Op, std::complex<float>>;
    case DType::kComplex128: return row_loop<Op, std::complex<double>>;
    default: throw_dtype_not_handled(dtype);
  }
}

}  // namespace

RowFn row_fn(RowOp op, DType dtype) {
  switch (op) {
    case RowOp::kAdd: return sum_fn<Plus>(dtype);
    case RowOp::kSubtract: return sum_fn<Minus>(dtype);
    case RowOp::kMultiply: return multiply_fn(dtype);
    case RowOp::kMinimum:
    case RowOp::kMaximum: return order_fn(op, dtype);
  }
  throw_dtype_not_handled(dtype);
}

void scatter_rows(RunContext& c, RowFn op, const RowTarget& target, const Tensor& indices, const std::byte* updates,
                  bool one) {
  constexpr int64_t kWorkPerRange = 65536;
  const int64_t row_bytes = target.row_elements * target.element_bytes;
  const int64_t work = indices.num_elements() * target.row_elements;
  const int64_t ranges = std::clamp<int64_t>(work / kWorkPerRange, 1, 16);
  const int64_t grain = std::max<int64_t>(1, (target.rows + ranges - 1) / ranges);
  const double cost = static_cast<double>(work + indices.num_elements()) / static_cast<double>(std::max<int64_t>(target.rows, 1));
  dispatch<int32_t, int64_t>(indices.dtype(), [&]<class Index>() {
    const std::span<const Index> values = indices.values<Index>();
    c.parallel_for(target.rows, grain, cost, [&](int64_t first, int64_t last) {
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t row = values[i];
        if (row < first || row >= last) continue;
        op(target.data + row * row_bytes, one ? updates : updates + static_cast<int64_t>(i) * row_bytes, target.row_elements, one);
      }
    });
  });
}

}  // namespace treenail::cpu
