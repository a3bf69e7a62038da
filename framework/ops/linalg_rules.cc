// SPDX-License-Identifier: Apache-2.0
#include "framework/ops/linalg_rules.h"

#include <numeric>
#include <vector>

#include "framework/base/error.h"
#include "framework/ops/array_rules.h"

namespace treenail {

PartialShape square_matrices(const ShapeContext& c, int i) {
  const PartialShape given = c.with_rank_at_least(i, 2);
  if (!given.rank_known()) return given;
  const int rank = given.rank();
  const int64_t rows = given[rank - 2], columns = given[rank - 1];
  if (rows != kUnknown && columns != kUnknown && rows != columns) {
    throw invalid_argument("Input matrix must be square, ", c.op().input_name(i), " has shape ",
                           given);
  }
  const int64_t extent = rows == kUnknown ? columns : rows;
  return given.with_dim(rank - 2, extent).with_dim(rank - 1, extent);
}

PartialShape batch_of(const PartialShape& shape, int count) {
  return shape.rank_known() ? shape.sub(0, shape.rank() - count) : PartialShape();
}

double cubic_flops(const OpInstance& op, const Shape& matrices, double each) {
  const auto n = static_cast<double>(matrices.dim(matrices.rank() - 1));
  return (is_complex(op.input_type(0)) ? 8.0 : 2.0) * each * n *
         static_cast<double>(matrices.num_elements());
}

Value matrix_product(Emitter& e, Value a, Value b, bool adjoint_a, bool adjoint_b) {
  return e.call("BatchMatMul", {a, b}, {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

Value triangular_solution(Emitter& e, Value matrix, Value rhs, bool lower, bool adjoint) {
  return e.call("MatrixTriangularSolve", {matrix, rhs}, {{"lower", lower}, {"adjoint", adjoint}});
}

Value adjoint_of(Emitter& e, Value matrices) {
  const PartialShape shape = e.shape(matrices);
  Value order;
  if (shape.rank_known()) {
    std::vector<int64_t> axes(static_cast<size_t>(shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    order = e.const_ints(DType::kInt32, axes);
  } else {
    const Value one = int_scalar(e, 1);
    const Value last = e.sub(e.call("Rank", {matrices}), one);
    const Value before = e.sub(last, one);
    const Value batch = e.call("Range", {int_scalar(e, 0), before, one});
    order = e.call("Concat", {batch, e.call("Pack", {last, before}), int_scalar(e, 0)});
  }
  const bool conjugate = is_complex(e.dtype(matrices));
  return e.call(conjugate ? "ConjugateTranspose" : "Transpose", {matrices, order});
}

Value band_of(Emitter& e, Value matrices, int64_t below, int64_t above) {
  return e.call("MatrixBandPart", {matrices, int_scalar(e, below), int_scalar(e, above)});
}

Value strictly_lower(Emitter& e, Value matrices) {
  const Value lower = band_of(e, matrices, -1, 0);
  return e.call("MatrixSetDiag", {lower, e.zeros_like(e.call("MatrixDiagPart", {lower}))});
}

Value half_triangle(Emitter& e, Value matrices) {
  const Value lower = band_of(e, matrices, -1, 0);
  return e.call("MatrixSetDiag", {lower, halved(e, e.call("MatrixDiagPart", {lower}))});
}

Value columns_of(Emitter& e, Value matrices, Value begin, Value end) {
  const Value none = int_scalar(e, 0);
  const bool open = !end.valid();
  return e.call("StridedSlice",
                {matrices, e.call("Pack", {none, begin}), e.call("Pack", {none, open ? none : end}),
                 int_vector(e, {1, 1})},
                {{"ellipsis_mask", int64_t{1}}, {"end_mask", int64_t{open ? 2 : 0}}});
}

Value scaled_columns(Emitter& e, Value matrices, Value factors) {
  return e.mul(matrices, e.call("ExpandDims", {factors, int_scalar(e, -2)}));
}

Value scaled_rows(Emitter& e, Value matrices, Value factors) {
  return e.mul(matrices, e.call("ExpandDims", {factors, int_scalar(e, -1)}));
}

Value last_extent(Emitter& e, Value matrices) {
  const PartialShape shape = e.shape(matrices);
  if (shape.rank_known() && shape[shape.rank() - 1] != kUnknown) {
    return int_scalar(e, shape[shape.rank() - 1]);
  }
  return e.call("StridedSlice",
                {e.shape_of(matrices, DType::kInt32), int_vector(e, {-1}), int_vector(e, {0}),
                 int_vector(e, {1})},
                {{"shrink_axis_mask", int64_t{1}}});
}

Value scaled_matrices(Emitter& e, Value factors, Value matrices) {
  const Value last = int_scalar(e, -1);
  return e.mul(e.call("ExpandDims", {e.call("ExpandDims", {factors, last}), last}), matrices);
}

Value inverse_differences(Emitter& e, Value x) {
  const Value differences = e.sub(e.call("ExpandDims", {x, int_scalar(e, -2)}),
                                  e.call("ExpandDims", {x, int_scalar(e, -1)}));
  return e.call("DivNoNan", {e.const_scalar(e.dtype(x), 1), differences});
}

Value halved(Emitter& e, Value x) { return e.mul(x, e.const_scalar(e.dtype(x), 0.5)); }

}  // namespace treenail
