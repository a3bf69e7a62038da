// SPDX-License-Identifier: Apache-2.0
// Functions of the matrices in the last two axes: exponentials, square roots, logarithms. How they
// are computed: kernels/host/linalg.
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

void function_shape(ShapeContext& c) { c.set_output(0, square_matrices(c, 0)); }

// The upper right quarter of matrices of twice the order of `half`.
Value upper_right(Emitter& e, Value matrices, Value half) {
  const Value none = int_scalar(e, 0);
  return e.call("StridedSlice",
                {matrices, e.call("Pack", {none, none, half}), e.call("Pack", {none, half, none}),
                 int_vector(e, {1, 1, 1})},
                {{"ellipsis_mask", int64_t{1}}, {"end_mask", int64_t{4}}});
}

// f([x, g; 0, x]) has f(x) on its diagonal and the derivative of f at x in the direction g above it
// (Mathias, A chain rule for matrix functions and applications, 1996; Higham, Functions of
// Matrices, theorem 3.6). With f(conj(z)) = conj(f(z)) the adjoint of the derivative at x is the
// derivative at x^H. It is an f again, which further derivatives follow from.
void function_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value x = adjoint_of(e, c.input(0)), g = c.gradient();
  const Value last = int_scalar(e, -1);
  const Value above[] = {x, g, last}, below[] = {e.zeros_like(x), x, last};
  const Value rows[] = {e.call("Concat", above), e.call("Concat", below), int_scalar(e, -2)};
  const Value whole = e.call(c.op().name(), {e.call("Concat", rows)});
  c.set(0, upper_right(e, whole, last_extent(e, x)));
}

OpDeclaration function(OpRegistry& r, const char* name) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("input: T").output("output: T").attr(kLinalgTypes).shape(function_shape);
  d.gradient(function_gradient, {"input"});
  return d;
}

}  // namespace

void register_matrix_functions_ops(OpRegistry& r) {
  function(r, "MatrixExponential")
      .doc(R"(Exponentials of matrices: 1 + x + x^2 / 2! + x^3 / 3! + ...

input and output are [..., n, n]. Scaling and squaring with Pade approximants (Higham 2005; Al-Mohy and Higham 2009), in
double precision. Where the exponential is out of range, elements are infinite or NaN; of a matrix that holds NaN or
infinity all are NaN. The gradient is the derivative's adjoint, of any order (Mathias 1996).
Errors: InvalidArgument for matrices that are not square.)");
  function(r, "MatrixSquareRoot")
      .doc(
          R"(Principal square roots of matrices: output output = input, with eigenvalues of positive real part.

input and output are [..., n, n]. By the Schur form (Bjorck and Hammarling 1983), in double precision. All elements are NaN
where there is no such root, as of some singular matrices, where a real matrix has none that is real, for it has a
negative eigenvalue, and of a matrix that holds NaN or infinity. Of complex matrices with negative eigenvalues a root is
given, one of whose eigenvalues is imaginary. The gradient is the derivative's adjoint, of any order (Mathias 1996); it
needs an invertible input.
Errors: InvalidArgument for matrices that are not square; "Schur decomposition was not successful", naming the first such
matrix of the batch, where the iteration does not converge.)");
  function(r, "MatrixLogarithm")
      .doc(
          R"(Principal logarithms of matrices: exp(output) = input, with eigenvalues whose imaginary parts are in (-pi, pi].

input and output are [..., n, n]. Inverse scaling and squaring of the Schur form (Al-Mohy and Higham 2012), in double
precision. All elements are NaN where the input is singular, where it is real and has a negative eigenvalue, so that its
logarithm is not real, and where it holds NaN or infinity. The gradient is the derivative's adjoint, of any order
(Mathias 1996).
Errors: InvalidArgument for matrices that are not square; "Schur decomposition was not successful", naming the first such
matrix of the batch, where the iteration does not converge.)");
  r.finish("matrix_functions");
}

}  // namespace treenail
