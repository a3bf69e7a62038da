// SPDX-License-Identifier: Apache-2.0
// Diagonals of tensors and of the matrices in the last two axes: made, taken out, replaced; and
// bands around them.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void diag_shape(ShapeContext& c) {
  const PartialShape diagonal = c.with_rank_at_least(0, 1);
  if (!diagonal.rank_known()) return;
  if (2 * diagonal.rank() > kMaxRank) {
    throw invalid_argument("diagonal has rank ", diagonal.rank(), ", at most ", kMaxRank / 2,
                           " is supported");
  }
  c.set_output(0, diagonal.concatenated(diagonal));
}

void diag_part_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.rank_known()) return;
  if (input.rank() == 0 || input.rank() % 2 != 0) {
    throw invalid_argument("Input must have even and non-zero rank, input rank is ", input.rank());
  }
  const int half = input.rank() / 2;
  PartialShape diagonal = input.sub(0, half);
  for (int i = 0; i < half; ++i) {
    diagonal = diagonal.with_dim(
        i, ShapeContext::merge_dim(input[i], input[i + half],
                                   concat("extents of axes ", i, " and ", i + half)));
  }
  c.set_output(0, diagonal);
}

void matrix_diag_shape(ShapeContext& c) {
  const PartialShape diagonal = c.with_rank_at_least(0, 1);
  if (!diagonal.rank_known()) return;
  c.set_output(0, diagonal.inserted(diagonal.rank(), diagonal[diagonal.rank() - 1]));
}

// The shape of the main diagonals of matrices.
PartialShape diagonal_of(const PartialShape& matrix) {
  if (!matrix.rank_known()) return PartialShape();
  const int64_t rows = matrix[matrix.rank() - 2];
  const int64_t columns = matrix[matrix.rank() - 1];
  const int64_t length =
      rows == kUnknown || columns == kUnknown ? kUnknown : std::min(rows, columns);
  return matrix.sub(0, matrix.rank() - 2).inserted(matrix.rank() - 2, length);
}

void matrix_diag_part_shape(ShapeContext& c) {
  c.set_output(0, diagonal_of(c.with_rank_at_least(0, 2)));
}

void matrix_set_diag_shape(ShapeContext& c) {
  const PartialShape matrix = c.with_rank_at_least(0, 2);
  const PartialShape wanted = diagonal_of(matrix);
  if (!wanted.compatible(c.input(1))) {
    throw invalid_argument("diagonal must have shape ", wanted, " for input of shape ", matrix,
                           ", got ", c.input(1));
  }
  c.set_output(0, matrix);
}

void matrix_band_part_shape(ShapeContext& c) {
  const PartialShape matrix = c.with_rank_at_least(0, 2);
  const char* const sides[] = {"num_lower", "num_upper"};
  for (int i = 0; i < 2 && matrix.rank_known(); ++i) {
    const std::optional<int64_t> count = known_scalar(c, i + 1);
    const int64_t extent = matrix[matrix.rank() - 2 + i];
    if (count && extent != kUnknown && *count > extent) {
      throw invalid_argument(sides[i], " must be negative or less or equal to number of ",
                             i == 0 ? "rows" : "columns", " (", extent, ") got: ", *count);
    }
  }
  c.with_rank(1, 0);
  c.with_rank(2, 0);
  c.set_output(0, matrix);
}

void diag_gradient(GradientContext& c) { c.set(0, c.e.call("DiagPart", {c.gradient()})); }
void diag_part_gradient(GradientContext& c) { c.set(0, c.e.call("Diag", {c.gradient()})); }
void matrix_diag_gradient(GradientContext& c) {
  c.set(0, c.e.call("MatrixDiagPart", {c.gradient()}));
}

// Matrices need not be square: the diagonal is set in zeros of the input's shape.
void matrix_diag_part_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value zeros = e.call("Fill", {c.input_shape_value(0), e.const_scalar(c.input_dtype(0), 0)});
  c.set(0, e.call("MatrixSetDiag", {zeros, c.gradient()}));
}

void matrix_set_diag_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value gradient = c.gradient();
  if (c.needed(1)) c.set(1, e.call("MatrixDiagPart", {gradient}));
  if (!c.needed(0)) return;
  const Value zeros = e.call("Fill", {c.input_shape_value(1), e.const_scalar(c.input_dtype(1), 0)});
  c.set(0, e.call("MatrixSetDiag", {gradient, zeros}));
}

void matrix_band_part_gradient(GradientContext& c) {
  c.set(0, c.e.call("MatrixBandPart", {c.gradient(), c.input(1), c.input(2)}));
}

}  // namespace

void register_diagonal_ops(OpRegistry& r) {
  r.op("Diag", HostAccess::kNone)
      .input("diagonal: T")
      .output("output: T")
      .attr("T: type")
      .shape(diag_shape)
      .gradient(diag_gradient)
      .doc(
          "Zeros with `diagonal` on the diagonal: output[i..., i...] = diagonal[i...]; the rank is "
          "doubled.");
  r.op("DiagPart", HostAccess::kNone)
      .input("input: T")
      .output("diagonal: T")
      .attr("T: type")
      .shape(diag_part_shape)
      .gradient(diag_part_gradient)
      .doc(
          "The diagonal of a tensor whose shape is some shape twice: diagonal[i...] = input[i..., "
          "i...].");
  r.op("MatrixDiag", HostAccess::kNone)
      .input("diagonal: T")
      .output("output: T")
      .attr("T: type")
      .shape(matrix_diag_shape)
      .gradient(matrix_diag_gradient)
      .doc("Square matrices in the last two axes, zero but for the given diagonals.");
  r.op("MatrixDiagPart", HostAccess::kNone)
      .input("input: T")
      .output("diagonal: T")
      .attr("T: type")
      .shape(matrix_diag_part_shape)
      .gradient(matrix_diag_part_gradient)
      .doc("The main diagonals of the matrices in the last two axes, square or not.");
  r.op("MatrixSetDiag", HostAccess::kNone)
      .input("input: T")
      .input("diagonal: T")
      .output("output: T")
      .attr("T: type")
      .in_place("input", "output")
      .shape(matrix_set_diag_shape)
      .gradient(matrix_set_diag_gradient)
      .doc("`input` with the main diagonals of its matrices replaced by `diagonal`.");
  r.op("MatrixBandPart", HostAccess::kNone)
      .input("input: T")
      .input("num_lower: Tindex")
      .input("num_upper: Tindex")
      .output("band: T")
      .attr("T: type")
      .attr("Tindex: {int32, int64} = int64")
      .host("num_lower")
      .host("num_upper")
      .in_place("input", "band")
      .shape(matrix_band_part_shape)
      .gradient(matrix_band_part_gradient, {"num_lower", "num_upper"})
      .doc(
          "The matrices in the last two axes, zero outside a band: `num_lower` diagonals below the "
          "main one and `num_upper` above it "
          "stay; a negative number keeps the whole triangle.");
  r.finish("diagonal");
}

}  // namespace treenail
