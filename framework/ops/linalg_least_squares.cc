// SPDX-License-Identifier: Apache-2.0
// Least squares with the matrices in the last two axes. How they are computed: kernels/host/linalg.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

void least_squares_shape(ShapeContext& c) {
  const PartialShape matrix = c.with_rank_at_least(0, 2), rhs = c.with_rank_at_least(1, 2);
  c.with_rank(2, 0);
  if (!matrix.rank_known() || !rhs.rank_known()) {
    const PartialShape& known = matrix.rank_known() ? matrix : rhs;
    if (known.rank_known()) c.set_output(0, PartialShape::unknown_with_rank(known.rank()));
    return;
  }
  const int rank = matrix.rank();
  if (rhs.rank() != rank || !rhs.sub(0, rank - 1).compatible(matrix.sub(0, rank - 1))) {
    throw invalid_argument("Input matrix and rhs are incompatible: matrix has shape ", matrix,
                           ", rhs ", rhs, "; rhs needs the same leading dimensions and as many ",
                           "rows");
  }
  const PartialShape batch =
      ShapeContext::merge(batch_of(matrix, 2), batch_of(rhs, 2), "batches of matrix and rhs");
  c.set_output(0, batch.concatenated(PartialShape({matrix[rank - 1], rhs[rank - 1]})));
}

void as_pseudoinverse_shape(ShapeContext& c) {
  const PartialShape matrix = c.with_rank_at_least(0, 2), inverse = c.with_rank_at_least(1, 2);
  c.set_output(0, inverse);
  if (!matrix.rank_known() || !inverse.rank_known()) return;
  const int columns = matrix.rank() - 1, rows = columns - 1;
  PartialShape wanted =
      batch_of(matrix, 2).concatenated(PartialShape({matrix[columns], matrix[rows]}));
  if (!wanted.compatible(inverse)) {
    throw invalid_argument("inverse of shape ", inverse, " is none of matrix of shape ", matrix);
  }
}

// --- Gradients --------------------------------------------------------------------------------

Value with_diagonal_plus(Emitter& e, Value gram, Value number) {
  const Value diagonal = e.call("MatrixDiagPart", {gram});
  return e.call("MatrixSetDiag", {gram, e.add(diagonal, e.cast(number, e.dtype(gram)))});
}

Value by_factor(Emitter& e, Value factor, Value rhs) {
  return triangular_solution(e, factor, triangular_solution(e, factor, rhs, true, false), true,
                             true);
}

struct Gradients {
  Value matrix, rhs;
};

struct LeastSquaresTerms {
  Emitter& e;
  Value a, b, regularizer, x, g;

  // x = (a^H a + l)^-1 a^H b.
  Gradients of_tall() const {
    const Value gram = with_diagonal_plus(e, matrix_product(e, a, a, true), regularizer);
    const Value z = by_factor(e, e.call("Cholesky", {gram}), g);
    const Value v = matrix_product(e, a, z);
    return {
        e.sub(matrix_product(e, residual(), z, false, true), matrix_product(e, v, x, false, true)),
        v};
  }

  // x = a^H (a a^H + l)^-1 b.
  Gradients of_wide() const {
    const Value gram = with_diagonal_plus(e, matrix_product(e, a, a, false, true), regularizer);
    const Value factor = e.call("Cholesky", {gram});
    const Value w = by_factor(e, factor, b), z = by_factor(e, factor, matrix_product(e, a, g));
    const Value rest = e.sub(g, matrix_product(e, a, z, true));
    return {e.sub(matrix_product(e, w, rest, false, true), matrix_product(e, z, x, false, true)),
            z};
  }

  // x = a^+ b, of matrices of any rank that does not change: Golub and Pereyra, The differentiation
  // of pseudo-inverses and nonlinear least squares problems whose variables separate, 1973.
  Gradients of_pseudoinverse() const {
    const Value adjoint = adjoint_of(e, a);
    const Value v = pseudoinverse_times(adjoint, g), w = pseudoinverse_times(adjoint, x);
    const Value z = pseudoinverse_times(a, v);
    const Value rest = e.sub(g, matrix_product(e, a, v, true));
    const Value first =
        e.sub(matrix_product(e, residual(), z, false, true), matrix_product(e, v, x, false, true));
    return {e.add(first, matrix_product(e, w, rest, false, true)), v};
  }

  // By the equations [a; sqrt(l)] x = [b; 0], whichever of a's sides is the longer one.
  Gradients of_unknown_shape() const {
    const Value root = e.cast(e.call("Sqrt", {regularizer}), e.dtype(a));
    const Value diagonal = e.call("MatrixDiagPart", {matrix_product(e, a, a, true)});
    const Value scaled = e.call("MatrixDiag", {e.mul(e.ones_like(diagonal), root)});
    const Value axis = int_scalar(e, -2);
    const Value of_a[] = {a, scaled, axis}, of_b[] = {b, e.zeros_like(x), axis};
    const LeastSquaresTerms longer = {
        e, e.call("Concat", of_a), e.call("Concat", of_b), regularizer, x, g};
    const Gradients both = longer.of_pseudoinverse();
    const Value rows = last_extent(e, adjoint_of(e, a));
    return {first_rows(both.matrix, rows), first_rows(both.rhs, rows)};
  }

 private:
  Value residual() const { return e.sub(b, matrix_product(e, a, x)); }
  Value pseudoinverse_times(Value matrix, Value rhs) const {
    return e.call("MatrixSolveLs", {matrix, rhs, e.const_scalar(DType::kFloat64, 0)},
                  {{"fast", false}});
  }
  Value first_rows(Value matrices, Value count) const {
    const Value none = int_scalar(e, 0);
    return e.call("StridedSlice",
                  {matrices, int_vector(e, {0, 0, 0}), e.call("Pack", {none, count, none}),
                   int_vector(e, {1, 1, 1})},
                  {{"ellipsis_mask", int64_t{1}}, {"end_mask", int64_t{4}}});
  }
};

void least_squares_gradient(GradientContext& c) {
  const LeastSquaresTerms terms = {c.e,        c.input(0),  c.input(1),
                                   c.input(2), c.output(0), c.gradient()};
  const PartialShape shape = c.input_shape(0);
  const int64_t m = shape.rank_known() ? shape[shape.rank() - 2] : kUnknown;
  const int64_t n = shape.rank_known() ? shape[shape.rank() - 1] : kUnknown;
  Gradients result;
  if (!c.op().get_bool("fast")) {
    result = terms.of_pseudoinverse();
  } else if (m == kUnknown || n == kUnknown) {
    result = terms.of_unknown_shape();
  } else {
    result = m >= n ? terms.of_tall() : terms.of_wide();
  }
  c.set(0, result.matrix);
  c.set(1, result.rhs);
}

// Golub and Pereyra 1973 for p = a^+: - p^H g p^H + (1 - a p) g^H p p^H + p^H p g^H (1 - p a), with
// products as small as the shorter side of a where that is its second one.
Value pseudoinverse_terms(Emitter& e, Value a, Value p, Value g) {
  const Value inner = matrix_product(e, g, p, false, true), turned = adjoint_of(e, inner);
  const Value rest = e.sub(adjoint_of(e, g), matrix_product(e, a, turned));
  const Value outer = matrix_product(e, rest, matrix_product(e, p, p, false, true));
  const Value projected = matrix_product(e, turned, matrix_product(e, p, a));
  const Value left = e.sub(e.sub(turned, projected), inner);
  return e.add(matrix_product(e, p, left, true), outer);
}

void as_pseudoinverse_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value a = c.input(0), p = c.output(0), g = c.gradient();
  const PartialShape shape = c.input_shape(0);
  const int rank = shape.rank_known() ? shape.rank() : 0;
  const bool wide = rank > 0 && shape[rank - 2] != kUnknown && shape[rank - 1] > shape[rank - 2];
  c.set(0, wide ? adjoint_of(e, pseudoinverse_terms(e, adjoint_of(e, a), adjoint_of(e, p),
                                                    adjoint_of(e, g)))
                : pseudoinverse_terms(e, a, p, g));
}

}  // namespace

void register_linalg_least_squares_ops(OpRegistry& r) {
  r.op("MatrixSolveLs", HostAccess::kNone)
      .input("matrix: T")
      .input("rhs: T")
      .input("l2_regularizer: double")
      .output("output: T")
      .attr(kLinalgTypes)
      .attr("fast: bool = true")
      .shape(least_squares_shape)
      .gradient(least_squares_gradient, {"matrix", "rhs", "l2_regularizer", "output"})
      .doc(
          R"(Least squares: the output with the least |matrix output - rhs|^2 + l2_regularizer |output|^2, the smallest where there
are several.

matrix is [..., m, n], rhs [..., m, k], output [..., n, k], l2_regularizer a number >= 0. With fast by normal equations and
Cholesky factors, for matrices of full rank whose condition is below 1e3 in float32 and complex64 or 1e7 in float64 and
complex128. Otherwise by singular values, for any matrix, where l2_regularizer is not looked at; values up to 10 max(m, n)
epsilon times the largest count as zero, and of a matrix that holds NaN or infinity the output is NaN. The gradient with
respect to matrix and rhs (without fast: Golub and Pereyra 1973) takes the rank for unchanging; there is none with respect
to l2_regularizer. Where the shape is not known while the graph is built, it goes by singular values.
Errors: InvalidArgument for shapes that do not go together, for a negative l2_regularizer, and, with fast, "Input matrix was
rank deficient or ill-conditioned", naming the first such matrix of the batch.)");
  r.op("AsPseudoInverse", HostAccess::kNone)
      .input("matrix: T")
      .input("inverse: T")
      .output("output: T")
      .attr(kLinalgTypes)
      .shape(as_pseudoinverse_shape)
      .gradient(as_pseudoinverse_gradient, {"matrix", "output"})
      .view_of("inverse")
      .doc(
          R"(inverse itself, which gradients take for the pseudoinverse of matrix.

matrix is [..., m, n], inverse and output are [..., n, m]. The gradient (Golub and Pereyra 1973) is that of the
pseudoinverse, of matrices of any rank that does not change; it divides by no differences of singular values, and equal ones
do no harm. There is none with respect to inverse. Errors: InvalidArgument for shapes that do not go together.)");
  r.finish("linalg_least_squares");
}

}  // namespace treenail
