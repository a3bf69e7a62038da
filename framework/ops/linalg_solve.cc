// SPDX-License-Identifier: Apache-2.0
// Systems of linear equations with the matrices in the last two axes: Cholesky and LU factors,
// solutions, inverses, determinants. How they are computed: kernels/cpu/linalg (small ones),
// kernels/host/linalg.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/complex_types.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

void square_shape(ShapeContext& c) { c.set_output(0, square_matrices(c, 0)); }

void determinant_shape(ShapeContext& c) {
  const PartialShape batch = batch_of(square_matrices(c, 0), 2);
  for (int i = 0; i < c.op().num_outputs(); ++i) c.set_output(i, batch);
}

void lu_shape(ShapeContext& c) {
  const PartialShape matrices = square_matrices(c, 0);
  c.set_output(0, matrices);
  c.set_output(1, matrices.rank_known() ? matrices.sub(0, matrices.rank() - 1) : PartialShape());
}

void solve_shape(ShapeContext& c) {
  const PartialShape matrix = square_matrices(c, 0), rhs = c.with_rank_at_least(1, 2);
  if (!matrix.rank_known() || !rhs.rank_known()) {
    c.set_output(0, matrix.rank_known() ? PartialShape::unknown_with_rank(matrix.rank()) : rhs);
    return;
  }
  const int rank = matrix.rank();
  const int64_t order = matrix[rank - 1];
  const bool same_rank = rhs.rank() == rank;
  if (!same_rank ||
      !rhs.sub(0, rank - 1).compatible(batch_of(matrix, 2).inserted(rank - 2, order))) {
    throw invalid_argument("Input matrix and rhs are incompatible: matrix has shape ", matrix,
                           ", rhs ", rhs, "; rhs needs the same leading dimensions and as many ",
                           "rows");
  }
  const PartialShape rows =
      ShapeContext::merge(matrix.sub(0, rank - 1), rhs.sub(0, rank - 1), "rows of matrix and rhs");
  c.set_output(0, rows.inserted(rank - 1, rhs[rank - 1]));
}

// --- Gradients --------------------------------------------------------------------------------

// Iain Murray, Differentiation of the Cholesky decomposition, 2016: the gradient is
// L^-H phi(L^H g) L^-1, made Hermitian, for the op reads one triangle as if it were both.
void cholesky_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value factor = c.output(0);
  const Value middle = half_triangle(e, matrix_product(e, factor, c.gradient(), true));
  const Value left = triangular_solution(e, factor, middle, true, true);
  const Value both = triangular_solution(e, factor, adjoint_of(e, left), true, true);
  c.set(0, halved(e, e.add(both, adjoint_of(e, both))));
}

// Giles, Collected matrix derivative results for forward and reverse mode AD, 2008: b's gradient
// solves the adjoint system, a's is - b' x^H.
template <bool kTriangular>
void solve_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value matrix = c.input(0), solution = c.output(0);
  const bool adjoint = c.op().get_bool("adjoint");
  NamedAttrs attrs = {{"adjoint", !adjoint}};
  const char* const op = kTriangular ? "MatrixTriangularSolve" : "MatrixSolve";
  if constexpr (kTriangular) attrs.push_back({"lower", c.op().get_bool("lower")});
  const Value rhs = e.call(op, {matrix, c.gradient()}, attrs);
  if (c.needed(1)) c.set(1, rhs);
  if (!c.needed(0)) return;
  Value result = e.neg(adjoint ? matrix_product(e, solution, rhs, false, true)
                               : matrix_product(e, rhs, solution, false, true));
  if constexpr (kTriangular) {
    const bool lower = c.op().get_bool("lower");
    result = band_of(e, result, lower ? -1 : 0, lower ? 0 : -1);
  }
  c.set(0, result);
}

// Giles 2008: - y^H g y^H, and its adjoint where y is the inverse of the adjoint.
void inverse_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value y = c.output(0), g = c.gradient();
  const Value result =
      c.op().get_bool("adjoint")
          ? matrix_product(e, y, matrix_product(e, g, y, true, false))
          : matrix_product(e, matrix_product(e, y, g, true, false), y, false, true);
  c.set(0, e.neg(result));
}

Value inverse_adjoint_times(GradientContext& c, Value factors) {
  const Value inverse = c.e.call("MatrixInverse", {c.input(0)}, {{"adjoint", true}});
  return scaled_matrices(c.e, factors, inverse);
}

// Giles 2008: d det = det tr(A^-1 dA).
void determinant_gradient(GradientContext& c) {
  c.set(0, inverse_adjoint_times(c, c.e.mul(c.gradient(), c.e.conj(c.output(0)))));
}

// d log|det| = Re tr(A^-1 dA), d sign = i sign Im tr(A^-1 dA), which is 0 for real numbers.
void log_determinant_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const DType dtype = c.input_dtype(0);
  if (!is_complex(dtype)) {
    if (c.has_gradient(1)) c.set(0, inverse_adjoint_times(c, c.gradient(1)));
    return;
  }
  const NamedAttrs part = {{"Tout", part_type(dtype)}};
  const Value size = e.call("Real", {c.gradient(1)}, part);
  const Value turn = e.call("Imag", {e.mul(c.gradient(0), e.conj(c.output(0)))}, part);
  c.set(0, inverse_adjoint_times(c, e.call("Complex", {size, turn}, {{"Tout", dtype}})));
}

// With P A = L U: L^-1 P dA U^-1 = L^-1 dL + dU U^-1, whose strictly lower triangle is L's and
// whose upper one is U's. The adjoint of that. (JAX, jax.lax.linalg.lu.)
void lu_gradient(GradientContext& c) {
  Emitter& e = c.e;
  if (!c.has_gradient(0)) return;
  const Value factors = c.output(0), g = c.gradient();
  const Value ones = e.ones_like(e.call("MatrixDiagPart", {factors}));
  const Value lower = e.call("MatrixSetDiag", {factors, ones});
  const Value below = matrix_product(e, band_of(e, lower, -1, 0), strictly_lower(e, g), true);
  const Value above =
      matrix_product(e, band_of(e, g, 0, -1), band_of(e, factors, 0, -1), false, true);
  const Value middle = e.add(strictly_lower(e, below), band_of(e, above, 0, -1));
  const Value left = triangular_solution(e, lower, middle, true, true);
  const Value both =
      adjoint_of(e, triangular_solution(e, factors, adjoint_of(e, left), false, false));
  // Row i of `both` belongs to row p[i] of the input.
  const Value chosen =
      e.call("OneHot", {c.output(1), last_extent(e, factors), int_scalar(e, 1), int_scalar(e, 0)});
  const Value rows = e.cast(chosen, c.input_dtype(0));
  c.set(0, matrix_product(e, rows, both, true));
}

// --- Arithmetic that the definitions stand for ---------------------------------------------------

double cholesky_flops(const OpInstance& op, std::span<const Shape> inputs, std::span<const Shape>) {
  return cubic_flops(op, inputs[0], 1.0 / 6);
}
double lu_flops(const OpInstance& op, std::span<const Shape> inputs, std::span<const Shape>) {
  return cubic_flops(op, inputs[0], 1.0 / 3);
}
double inverse_flops(const OpInstance& op, std::span<const Shape> inputs, std::span<const Shape>) {
  return cubic_flops(op, inputs[0], 1.0);
}
double triangular_flops(const OpInstance& op, std::span<const Shape> inputs,
                        std::span<const Shape> outputs) {
  const auto columns = static_cast<double>(outputs[0].dim(outputs[0].rank() - 1));
  return (is_complex(op.input_type(0)) ? 4.0 : 1.0) * columns *
         static_cast<double>(inputs[0].num_elements());
}
double solve_flops(const OpInstance& op, std::span<const Shape> inputs,
                   std::span<const Shape> outputs) {
  return lu_flops(op, inputs, outputs) + 2 * triangular_flops(op, inputs, outputs);
}

void factor_ops(OpRegistry& r) {
  r.op("Cholesky", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr(kLinalgTypes)
      .shape(square_shape)
      .flops(cholesky_flops)
      .gradient(cholesky_gradient, {"output"})
      .doc(R"(Cholesky factors of Hermitian positive definite matrices: input = output output^H.

input is [..., n, n]; of each matrix the lower triangle is read, and the factor is lower triangular with a positive
diagonal. The gradient is that of the Hermitian matrix, shared by both triangles (Murray 2016).
Errors: InvalidArgument for matrices that are not square; "Cholesky decomposition was not successful", naming the first
such matrix of the batch, where one is not positive definite or holds NaN.)");
  r.op("Lu", HostAccess::kNone)
      .input("input: T")
      .output("lu: T")
      .output("p: output_idx_type")
      .attr(kLinalgTypes)
      .attr("output_idx_type: {int32, int64} = int32")
      .shape(lu_shape)
      .flops(lu_flops)
      .gradient(lu_gradient, {"lu", "p"})
      .doc(R"(LU factors by partial pivoting: row p[i] of the input is row i of L U.

input is [..., n, n]. lu holds U in its upper triangle and, below the diagonal, L, whose diagonal is one. p is [..., n].
Errors: InvalidArgument for matrices that are not square; "Input is not invertible", naming the first such matrix of the
batch, where a pivot is zero.)");
}

void solution_ops(OpRegistry& r) {
  r.op("MatrixTriangularSolve", HostAccess::kNone)
      .input("matrix: T")
      .input("rhs: T")
      .output("output: T")
      .attr("lower: bool = true")
      .attr("adjoint: bool = false")
      .attr(kLinalgTypes)
      .shape(solve_shape)
      .flops(triangular_flops)
      .gradient(solve_gradient<true>, {"matrix", "output"})
      .doc(R"(Solves matrix output = rhs for triangular matrices, by substitution.

matrix is [..., n, n], rhs and output are [..., n, k]. Of each matrix the lower triangle is read, or the upper one where
lower is false; with adjoint the system is matrix^H output = rhs.
Errors: InvalidArgument for matrices that are not square or do not go with rhs; "Input matrix is not invertible", naming
the first such matrix of the batch, where a diagonal element is zero.)");
  r.op("MatrixSolve", HostAccess::kNone)
      .input("matrix: T")
      .input("rhs: T")
      .output("output: T")
      .attr("adjoint: bool = false")
      .attr(kLinalgTypes)
      .shape(solve_shape)
      .flops(solve_flops)
      .gradient(solve_gradient<false>, {"matrix", "output"})
      .doc(R"(Solves matrix output = rhs by LU factors with partial pivoting.

matrix is [..., n, n], rhs and output are [..., n, k]; with adjoint the system is matrix^H output = rhs.
Errors: InvalidArgument for matrices that are not square or do not go with rhs; "Input matrix is not invertible", naming
the first such matrix of the batch, where a pivot is zero.)");
  r.op("MatrixInverse", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("adjoint: bool = false")
      .attr(kLinalgTypes)
      .shape(square_shape)
      .flops(inverse_flops)
      .gradient(inverse_gradient, {"output"})
      .doc(R"(Inverses of matrices, or of their adjoints, by LU factors with partial pivoting.

input and output are [..., n, n]. MatrixSolve is faster and more exact where the inverse would be multiplied by something.
Errors: InvalidArgument for matrices that are not square; "Input is not invertible", naming the first such matrix of the
batch, where a pivot is zero.)");
}

void determinant_ops(OpRegistry& r) {
  r.op("MatrixDeterminant", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr(kLinalgTypes)
      .shape(determinant_shape)
      .flops(lu_flops)
      .gradient(determinant_gradient, {"input", "output"})
      .doc(
          R"(Determinants of matrices: the product of the pivots of their LU factors, which overflows only where the
determinant does.

input is [..., n, n], output [...]; 1 where n is 0. The gradient needs invertible matrices.
Errors: InvalidArgument for matrices that are not square.)");
  r.op("LogMatrixDeterminant", HostAccess::kNone)
      .input("input: T")
      .output("sign: T")
      .output("log_abs_determinant: T")
      .attr(kLinalgTypes)
      .shape(determinant_shape)
      .flops(lu_flops)
      .gradient(log_determinant_gradient, {"input", "sign"})
      .doc(
          R"(Sign and logarithm of the absolute value of determinants, which may be out of range themselves.

input is [..., n, n], both outputs are [...]. The sign has absolute value 1; of singular matrices the sign is 0 and the
logarithm -inf. The gradient needs invertible matrices.
Errors: InvalidArgument for matrices that are not square.)");
}

}  // namespace

void register_linalg_solve_ops(OpRegistry& r) {
  factor_ops(r);
  solution_ops(r);
  determinant_ops(r);
  r.finish("linalg_solve");
}

}  // namespace treenail
