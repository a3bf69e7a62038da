// SPDX-License-Identifier: Apache-2.0
// Sums and differences of rows, and the walk over indices. Signed integers share the unsigned
// loops: sums wrap alike.
#include "kernels/cpu/scatter/row_ops.h"

#include <complex>
#include <cstring>
#include <span>

#include "kernels/cpu/scatter/row_loops.h"

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

template <class Index>
void scatter_from(RunContext& c, RowFn op, const RowTarget& target, std::span<const Index> indices,
                  const std::byte* updates, bool one) {
  constexpr int64_t kWorkPerRange = 65536;
  const int64_t row_bytes = target.row_elements * target.element_bytes;
  const int64_t work = static_cast<int64_t>(indices.size()) * target.row_elements;
  const int64_t ranges = std::clamp<int64_t>(work / kWorkPerRange, 1, 16);
  const int64_t grain = std::max<int64_t>(1, (target.rows + ranges - 1) / ranges);
  const double cost = static_cast<double>(work + static_cast<int64_t>(indices.size())) /
                      static_cast<double>(std::max<int64_t>(target.rows, 1));
  c.parallel_for(target.rows, grain, cost, [&](int64_t first, int64_t last) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t row = indices[i];
      if (row < first || row >= last) continue;
      op(target.data + row * row_bytes,
         one ? updates : updates + static_cast<int64_t>(i) * row_bytes, target.row_elements, one);
    }
  });
}

}  // namespace

RowFn row_fn(RowOp op, DType dtype) {
  switch (op) {
    case RowOp::kAdd:
      return wrapping_fn<Plus>(dtype);
    case RowOp::kSubtract:
      return wrapping_fn<Minus>(dtype);
    case RowOp::kMultiply:
      return multiply_fn(dtype);
    case RowOp::kMinimum:
    case RowOp::kMaximum:
      return order_fn(op, dtype);
  }
  throw_dtype_not_handled(dtype);
}

void scatter_rows(RunContext& c, RowFn op, const RowTarget& target, const Tensor& indices,
                  const std::byte* updates, bool one) {
  dispatch<int32_t, int64_t>(indices.dtype(), [&]<class Index>() {
    scatter_from<Index>(c, op, target, indices.values<Index>(), updates, one);
  });
}

void scatter_rows(RunContext& c, RowFn op, const RowTarget& target, const int64_t* indices,
                  int64_t n, const std::byte* updates) {
  scatter_from<int64_t>(c, op, target, {indices, static_cast<size_t>(n)}, updates, false);
}

void fill_zeros(RunContext& c, Tensor& output) {
  constexpr int64_t kPiece = int64_t{128} << 10;
  auto* bytes = static_cast<std::byte*>(output.raw());
  c.parallel_for(static_cast<int64_t>(output.bytes()), kPiece, 0.05,
                 [bytes](int64_t begin, int64_t end) {
                   std::memset(bytes + begin, 0, static_cast<size_t>(end - begin));
                 });
}

}  // namespace treenail::cpu
