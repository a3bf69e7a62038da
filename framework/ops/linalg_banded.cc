// SPDX-License-Identifier: Apache-2.0
// Matrices of a few diagonals, which are given alone: tridiagonal systems and products, triangular
// systems with bands. Row r of such diagonals holds A[j, j + first - r] in column j; what lies
// beyond the matrix is never read. How they are computed: kernels/host/linalg/tridiagonal.cc,
// banded.cc. Dense systems: linalg_solve.cc.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

int64_t from_end(const PartialShape& shape, int axis) {
  return shape.rank_known() ? shape[shape.rank() - axis] : kUnknown;
}

// Diagonals [..., count, M] with an rhs [..., M, K]; gives the shape of the result.
PartialShape beside_diagonals(const ShapeContext& c, int diagonals, int rhs, int64_t count) {
  const PartialShape d = c.with_rank_at_least(diagonals, 2), b = c.with_rank_at_least(rhs, 2);
  const int64_t rows = from_end(d, 2);
  if (rows != kUnknown && rows != count) {
    throw invalid_argument("Expected ", count, " diagonals of each matrix, got ", rows, ": ",
                           c.op().input_name(diagonals), " has shape ", d);
  }
  if (!d.rank_known() || !b.rank_known()) return b;
  const int64_t order = d[d.rank() - 1];
  const PartialShape wanted = batch_of(d, 2).concatenated(PartialShape({order, kUnknown}));
  if (!wanted.compatible(b)) {
    throw invalid_argument("Expected the same leading dimensions and as many rows as diagonals ",
                           "have elements: ", c.op().input_name(diagonals), " has shape ", d, ", ",
                           c.op().input_name(rhs), " ", b);
  }
  return ShapeContext::merge(wanted, b, "diagonals and rhs");
}

void tridiagonal_solve_shape(ShapeContext& c) { c.set_output(0, beside_diagonals(c, 0, 1, 3)); }

void tridiagonal_matmul_shape(ShapeContext& c) {
  PartialShape result = beside_diagonals(c, 0, 3, 1);
  for (const int i : {1, 2}) {
    result = ShapeContext::merge(result, beside_diagonals(c, i, 3, 1), "diagonals and rhs");
  }
  c.set_output(0, result);
}

void banded_triangular_shape(ShapeContext& c) {
  const PartialShape bands = c.with_rank_at_least(0, 2), rhs = c.with_rank_at_least(1, 2);
  if (from_end(bands, 2) == 0) {
    throw invalid_argument("Expected at least one band, the diagonal: matrix has shape ", bands);
  }
  const int64_t order = from_end(bands, 1), rows = from_end(rhs, 2);
  if (order != kUnknown && rows != kUnknown && order != rows) {
    throw invalid_argument("Input matrix and rhs are incompatible: matrix has shape ", bands,
                           ", rhs ", rhs, "; rhs needs as many rows as bands have elements");
  }
  if (!bands.rank_known() || !rhs.rank_known()) return;
  const PartialShape batch = ShapeContext::broadcast(batch_of(bands, 2), batch_of(rhs, 2));
  c.set_output(
      0, batch.concatenated(PartialShape({order == kUnknown ? rows : order, from_end(rhs, 1)})));
}

// --- Gradients --------------------------------------------------------------------------------

// x as [batch, M, K].
Value one_batch(Emitter& e, Value x) {
  const AxisGroup groups[] = {{0, -2}, {-2, -1}, {-1, kToEnd}};
  return e.reshape(x, grouped_shape(e, e.shape(x), e.shape_of(x), groups));
}

// The extents of x before the last two axes, and these.
Value batch_with(Emitter& e, Value x, Value rows, Value columns) {
  const Value batch = e.call(
      "StridedSlice", {e.shape_of(x), int_vector(e, {0}), int_vector(e, {-2}), int_vector(e, {1})},
      {{"begin_mask", int64_t{1}}});
  const Value last = e.cast(e.call("Pack", {rows, columns}), DType::kInt64);
  return e.call("Concat", {batch, last, int_scalar(e, 0)});
}

// Diagonals of p q^H, of p and q [..., M, K]: [..., bands, M], where `before` of the bands are
// below the main diagonal, zero where there is no element. The products are formed alone that are
// asked for. int32 scalars: bands, before, after; bands = before + 1 + after.
Value bands_of_product(Emitter& e, Value p, Value q, Value bands, Value before, Value after) {
  const Value zero = int_scalar(e, 0), one = int_scalar(e, 1);
  const Value none = e.call("Pack", {zero, zero});
  const Value paddings = e.call("Pack", {none, e.call("Pack", {before, after}), none});
  const Value rows = one_batch(e, p);
  const Value padded =
      e.call("Pad", {e.conj(one_batch(e, q)), paddings, e.const_scalar(e.dtype(q), 0)});
  const Value order = element_of(e, e.shape_of(rows, DType::kInt32), 1);
  // Row r meets row j + bands - 1 - r of the padded q in its column j.
  const Value shifts = e.call("Range", {e.sub(bands, one), int_scalar(e, -1), int_scalar(e, -1)});
  const Value columns = e.call("Range", {zero, order, one});
  const Value meets = e.add(e.call("ExpandDims", {shifts, one}), columns);
  const Value partners = e.call("Gather", {padded, meets, one});
  const Value products = e.mul(e.call("ExpandDims", {rows, one}), partners);
  const Value sums = e.call("Sum", {products, int_vector(e, {-1})});
  return e.reshape(sums, batch_with(e, p, bands, order));
}

Value three_bands_of_product(Emitter& e, Value p, Value q) {
  return bands_of_product(e, p, q, int_scalar(e, 3), int_scalar(e, 1), int_scalar(e, 1));
}

// The three rows of tridiagonal matrices, [..., 1, M] each: above, on and below the diagonal.
std::vector<Value> split_diagonals(Emitter& e, Value diagonals) {
  const Value inputs[] = {int_scalar(e, -2), diagonals};
  return e.emit("Split", inputs, {{"num_split", int64_t{3}}});
}

// Those of the adjoint matrices. Elements that are never read change places.
std::vector<Value> adjoint_diagonals(Emitter& e, const std::vector<Value>& rows) {
  const auto rolled = [&](Value row, int64_t shift) {
    return e.call("Roll", {e.conj(row), int_scalar(e, shift), int_scalar(e, -1)});
  };
  return {rolled(rows[2], -1), e.conj(rows[1]), rolled(rows[0], 1)};
}

// With A x = b: b's gradient solves A^H b' = g, A's is - b' x^H (Giles 2008), of which the
// diagonals are formed alone.
void tridiagonal_solve_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const std::vector<Value> rows = adjoint_diagonals(e, split_diagonals(e, c.input(0)));
  const Value adjoint = e.call("Concat", {rows[0], rows[1], rows[2], int_scalar(e, -2)});
  const Value rhs = e.call("TridiagonalSolve", {adjoint, c.gradient()},
                           {{"partial_pivoting", c.op().get_bool("partial_pivoting")}});
  c.set(1, rhs);
  if (c.needed(0)) c.set(0, e.neg(three_bands_of_product(e, rhs, c.output(0))));
}

void tridiagonal_matmul_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient();
  const std::vector<Value> rows = adjoint_diagonals(e, {c.input(0), c.input(1), c.input(2)});
  if (c.needed(3)) c.set(3, e.call("TridiagonalMatMul", {rows[0], rows[1], rows[2], g}));
  if (!c.needed(0) && !c.needed(1) && !c.needed(2)) return;
  const std::vector<Value> parts = split_diagonals(e, three_bands_of_product(e, g, c.input(3)));
  for (int i = 0; i < 3; ++i) c.set(i, parts[static_cast<size_t>(i)]);
}

void banded_triangular_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const bool lower = c.op().get_bool("lower"), adjoint = c.op().get_bool("adjoint");
  const Value rhs = e.call("BandedTriangularSolve", {c.input(0), c.gradient()},
                           {{"lower", lower}, {"adjoint", !adjoint}});
  if (c.needed(1)) c.set(1, c.sum_to_input(rhs, 1));
  if (!c.needed(0)) return;
  const Value solution = c.output(0);
  const Value extents = c.input_shape_value(0, DType::kInt32);
  const Value bands = element_of(e,
                                 e.call("StridedSlice", {extents, int_vector(e, {-2}),
                                                         int_vector(e, {-1}), int_vector(e, {1})}),
                                 0);
  const Value others = e.sub(bands, int_scalar(e, 1)), none = int_scalar(e, 0);
  const Value product = bands_of_product(e, adjoint ? solution : rhs, adjoint ? rhs : solution,
                                         bands, lower ? others : none, lower ? none : others);
  c.set(0, c.sum_to_input(e.neg(product), 0));
}

// --- Arithmetic that the definitions stand for ---------------------------------------------------

double banded_flops(const OpInstance& op, const Shape& result, double each) {
  return (is_complex(op.input_type(0)) ? 4.0 : 1.0) * each *
         static_cast<double>(result.num_elements());
}
double tridiagonal_flops(const OpInstance& op, std::span<const Shape>,
                         std::span<const Shape> outputs) {
  return banded_flops(op, outputs[0], 6);
}
double banded_triangular_flops(const OpInstance& op, std::span<const Shape> inputs,
                               std::span<const Shape> outputs) {
  const auto bands = static_cast<double>(inputs[0].dim(inputs[0].rank() - 2));
  return banded_flops(op, outputs[0], 2 * bands);
}

void tridiagonal_ops(OpRegistry& r) {
  r.op("TridiagonalSolve", HostAccess::kNone)
      .input("diagonals: T")
      .input("rhs: T")
      .output("output: T")
      .attr("partial_pivoting: bool = true")
      .attr(kLinalgTypes)
      .shape(tridiagonal_solve_shape)
      .flops(tridiagonal_flops)
      .gradient(tridiagonal_solve_gradient, {"diagonals", "output"})
      .doc(
          R"(Solves A output = rhs for tridiagonal matrices A, in a time proportional to their order.

diagonals is [..., 3, M]: above, on and below the diagonal, row r holding A[j, j + 1 - r] in column j; the last element
above and the first one below are not read. rhs and output are [..., M, K]. Gaussian elimination with partial pivoting,
or without it (Thomas's algorithm), which is faster and safe for diagonally dominant or positive definite matrices.
Errors: InvalidArgument for shapes that do not go together; "The matrix is not invertible", naming the first such matrix
of the batch, where a pivot is zero. Without pivoting it may be invertible nevertheless.)");
  r.op("TridiagonalMatMul", HostAccess::kNone)
      .input("superdiag: T")
      .input("maindiag: T")
      .input("subdiag: T")
      .input("rhs: T")
      .output("output: T")
      .attr(kLinalgTypes)
      .shape(tridiagonal_matmul_shape)
      .flops(tridiagonal_flops)
      .gradient(tridiagonal_matmul_gradient, {"superdiag", "maindiag", "subdiag", "rhs"})
      .doc(R"(Products of tridiagonal matrices and rhs.

superdiag, maindiag and subdiag are [..., 1, M] and hold A[j, j + 1], A[j, j] and A[j, j - 1] in column j; the last
element of superdiag and the first of subdiag are not read. rhs and output are [..., M, K].
Errors: InvalidArgument for shapes that do not go together.)");
}

}  // namespace

void register_linalg_banded_ops(OpRegistry& r) {
  tridiagonal_ops(r);
  r.op("BandedTriangularSolve", HostAccess::kNone)
      .input("matrix: T")
      .input("rhs: T")
      .output("output: T")
      .attr("lower: bool = true")
      .attr("adjoint: bool = false")
      .attr(kLinalgTypes)
      .shape(banded_triangular_shape)
      .flops(banded_triangular_flops)
      .gradient(banded_triangular_gradient, {"matrix", "output"})
      .doc(R"(Solves A output = rhs for triangular matrices A with few diagonals, by substitution.

matrix is [..., K, M]. Where A is lower triangular, row r holds A[j, j - r] in column j: the diagonal comes first. Where
lower is false, row r holds A[j, j + K - 1 - r]: the diagonal comes last. Elements beyond A are not read. With adjoint the
system is A^H output = rhs. rhs is [..., M, N]; the axes before the last two are broadcast.
Errors: InvalidArgument for shapes that do not go together; "Input matrix is not invertible", naming the first such
matrix of the batch of matrices, where a diagonal element is zero.)");
  r.finish("linalg_banded");
}

}  // namespace treenail
