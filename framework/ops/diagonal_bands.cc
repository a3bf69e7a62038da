// SPDX-License-Identifier: Apache-2.0
// Several neighbouring diagonals of the matrices in the last two axes: made, taken out, replaced.
// k says which, k[0] the lowest to k[1] the highest, 0 being the main one and negative numbers
// below it. A tensor of them has the highest first, all as long as the longest, elements from the
// left. Main diagonals alone: diagonal.cc.
#include <algorithm>
#include <optional>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

struct BandRange {
  int64_t lower, upper;
  int64_t count() const { return upper - lower + 1; }
};

// The value of input `i`, one number or two; nothing while it is not known.
std::optional<BandRange> band_range(const ShapeContext& c, int i) {
  const PartialShape& shape = c.input(i);
  if (shape.rank_known() &&
      (shape.rank() > 1 || (shape.rank() == 1 && (shape[0] == 0 || shape[0] > 2)))) {
    throw invalid_argument(
        "diag_index must be a scalar or vector with one or two elements, received ",
        "tensor of shape: ", shape);
  }
  const std::optional<std::vector<int64_t>> values = known_vector(c, i);
  if (!values || values->empty()) return std::nullopt;
  const BandRange k{values->front(), values->back()};
  if (k.lower > k.upper) {
    throw invalid_argument("lower_diag_index must not be larger than upper_diag_index: ", k.lower,
                           " > ", k.upper);
  }
  return k;
}

void check_index(const char* what, int64_t index, int64_t rows, int64_t columns) {
  if (index == 0 || (index > -rows && index < columns)) return;
  throw invalid_argument(what, " is out of bound: ", index, ". It must be between ", -rows, " and ",
                         columns);
}

// The shape of diagonals of `matrix`; unknown where k or the sides are.
PartialShape diagonals_shape(const PartialShape& matrix, const std::optional<BandRange>& k) {
  if (!matrix.rank_known() || !k) return PartialShape();
  const int rank = matrix.rank();
  const int64_t rows = matrix[rank - 2], columns = matrix[rank - 1];
  int64_t length = kUnknown;
  if (rows != kUnknown && columns != kUnknown) {
    check_index("lower_diag_index", k->lower, rows, columns);
    check_index("upper_diag_index", k->upper, rows, columns);
    length =
        std::min(rows + std::min<int64_t>(k->upper, 0), columns - std::max<int64_t>(k->lower, 0));
  }
  const PartialShape batch = matrix.sub(0, rank - 2);
  return batch.concatenated(k->count() == 1 ? PartialShape({length})
                                            : PartialShape({k->count(), length}));
}

// A side of matrices, given or not, that needs to be at least `least`.
int64_t checked_side(const char* what, int64_t given, int64_t least) {
  if (given == -1) return least;
  if (given < least) throw invalid_argument(what, " is too small: ", given, " < ", least);
  return given;
}

// rows x columns of matrices for diagonals of that length.
PartialShape sides_for(const BandRange& k, int64_t length, int64_t rows, int64_t columns) {
  const int64_t least_rows = length - std::min<int64_t>(k.upper, 0);
  const int64_t least_columns = length + std::max<int64_t>(k.lower, 0);
  if (rows == -1 && columns == -1) rows = columns = std::max(least_rows, least_columns);
  rows = checked_side("num_rows", rows, least_rows);
  columns = checked_side("num_cols", columns, least_columns);
  if (rows != least_rows && columns != least_columns) {
    throw invalid_argument(
        "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and "
        "the ",
        "length of the given diagonals: ", rows, " > ", least_rows, " and ", columns, " > ",
        least_columns, ", so that no diagonal would be complete");
  }
  check_index("lower_diag_index", k.lower, rows, columns);
  check_index("upper_diag_index", k.upper, rows, columns);
  return PartialShape({rows, columns});
}

void matrix_diag_shape(ShapeContext& c) {
  for (const int i : {2, 3, 4}) c.with_rank(i, 0);
  const std::optional<BandRange> k = band_range(c, 1);
  const PartialShape diagonal = c.with_rank_at_least(0, k && k->count() > 1 ? 2 : 1);
  if (!diagonal.rank_known() || !k) return;
  const int own = k->count() > 1 ? 2 : 1;
  if (own == 2) {
    const int64_t given = diagonal[diagonal.rank() - 2];
    if (given != kUnknown && given != k->count()) {
      throw invalid_argument("The number of diagonals provided in the input does not match the ",
                             "lower_diag_index and upper_diag_index range: ", given, " and ",
                             k->count());
    }
  }
  const PartialShape batch = diagonal.sub(0, diagonal.rank() - own);
  const int64_t length = diagonal[diagonal.rank() - 1];
  const std::optional<int64_t> rows = known_scalar(c, 2), columns = known_scalar(c, 3);
  const bool known = length != kUnknown && rows && columns;
  c.set_output(0, batch.concatenated(known ? sides_for(*k, length, *rows, *columns)
                                           : PartialShape({kUnknown, kUnknown})));
}

void matrix_diag_part_shape(ShapeContext& c) {
  c.with_rank(2, 0);
  c.set_output(0, diagonals_shape(c.with_rank_at_least(0, 2), band_range(c, 1)));
}

void matrix_set_diag_shape(ShapeContext& c) {
  const PartialShape matrix = c.with_rank_at_least(0, 2);
  const PartialShape wanted = diagonals_shape(matrix, band_range(c, 2));
  if (!wanted.compatible(c.with_rank_at_least(1, 1))) {
    throw invalid_argument("diagonal must have shape ", wanted, " for input of shape ", matrix,
                           ", got ", c.input(1));
  }
  c.set_output(0, matrix);
}

// --- Gradients --------------------------------------------------------------------------------

Value zero_of(Emitter& e, Value like) { return e.const_scalar(e.dtype(like), 0); }

Value bands_of(Emitter& e, Value matrices, Value k) {
  return e.call("MatrixDiagPartV2", {matrices, k, zero_of(e, matrices)});
}

// What padding has a part in is all but the elements that come from elsewhere.
Value rest_of(Emitter& e, Value all, Value others) {
  return e.sub(sum_of_all(e, all), sum_of_all(e, others));
}

void matrix_diag_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value diagonal = bands_of(e, c.gradient(), c.input(1));
  c.set(0, diagonal);
  if (c.needed(4)) c.set(4, rest_of(e, c.gradient(), diagonal));
}

void matrix_diag_part_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value zeros = e.call("Fill", {c.input_shape_value(0), e.const_scalar(c.input_dtype(0), 0)});
  const Value matrices = e.call("MatrixSetDiagV2", {zeros, c.gradient(), c.input(1)});
  c.set(0, matrices);
  if (c.needed(2)) c.set(2, rest_of(e, c.gradient(), matrices));
}

void matrix_set_diag_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value gradient = c.gradient(), k = c.input(2);
  if (c.needed(1)) c.set(1, bands_of(e, gradient, k));
  if (!c.needed(0)) return;
  const Value zeros = e.call("Fill", {c.input_shape_value(1), e.const_scalar(c.input_dtype(1), 0)});
  c.set(0, e.call("MatrixSetDiagV2", {gradient, zeros, k}));
}

}  // namespace

void register_diagonal_bands_ops(OpRegistry& r) {
  r.op("MatrixDiagV2", HostAccess::kNone)
      .input("diagonal: T")
      .input("k: int32")
      .input("num_rows: int32")
      .input("num_cols: int32")
      .input("padding_value: T")
      .output("output: T")
      .attr("T: type")
      .host("k")
      .host("num_rows")
      .host("num_cols")
      .shape(matrix_diag_shape)
      .gradient(matrix_diag_gradient, {"k"})
      .doc(R"(Matrices in the last two axes with the given diagonals, `padding_value` elsewhere.

k is a number, or the lowest and the highest of several neighbouring diagonals: 0 is the main one, negative ones are below.
diagonal is [..., L], or [..., n, L] where there are n > 1, the highest first, each from the left; what a shorter one leaves
is not read. num_rows and num_cols, -1 where not given, are by default the least that have room, equal ones where neither is
given.
Errors: InvalidArgument for k out of bound, sides that are too small, and such that no diagonal would be complete.)");
  r.op("MatrixDiagPartV2", HostAccess::kNone)
      .input("input: T")
      .input("k: int32")
      .input("padding_value: T")
      .output("diagonal: T")
      .attr("T: type")
      .host("k")
      .shape(matrix_diag_part_shape)
      .gradient(matrix_diag_part_gradient, {"k"})
      .doc(R"(Diagonals of the matrices in the last two axes, as MatrixDiagV2 takes them.

k is a number, or the lowest and the highest of several neighbouring diagonals. Shorter ones are completed by
`padding_value`.
Errors: InvalidArgument for k out of bound.)");
  r.op("MatrixSetDiagV2", HostAccess::kNone)
      .input("input: T")
      .input("diagonal: T")
      .input("k: int32")
      .output("output: T")
      .attr("T: type")
      .host("k")
      .in_place("input", "output")
      .shape(matrix_set_diag_shape)
      .gradient(matrix_set_diag_gradient, {"k"})
      .doc(
          "`input` with diagonals `k` of its matrices replaced, which are as MatrixDiagV2 takes "
          "them. Errors: InvalidArgument for k out of bound and diagonals of another shape.");
  r.finish("diagonal_bands");
}

}  // namespace treenail
