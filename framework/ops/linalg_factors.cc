// SPDX-License-Identifier: Apache-2.0
// Orthogonal decompositions of the matrices in the last two axes: QR, eigenvalues of Hermitian
// matrices, singular values. How they are computed: kernels/cpu/linalg (small ones),
// kernels/host/linalg. Factors for systems of equations: linalg_solve.cc.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/complex_types.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

int64_t least(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == kUnknown || b == kUnknown ? kUnknown : std::min(a, b);
}

PartialShape with_last(const PartialShape& batch, int64_t rows, int64_t columns) {
  return batch.concatenated(PartialShape({rows, columns}));
}

void qr_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 2);
  if (!input.rank_known()) return;
  const PartialShape batch = batch_of(input, 2);
  const int64_t m = input[input.rank() - 2], n = input[input.rank() - 1];
  const int64_t columns = c.op().get_bool("full_matrices") ? m : least(m, n);
  c.set_output(0, with_last(batch, m, columns));
  c.set_output(1, with_last(batch, columns, n));
}

void eigh_shape(ShapeContext& c) {
  const PartialShape input = square_matrices(c, 0);
  c.set_output(0, input.rank_known() ? input.sub(0, input.rank() - 1) : PartialShape());
  c.set_output(1, c.op().get_bool("compute_v") ? input : PartialShape({0}));
}

void svd_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 2);
  const bool vectors = c.op().get_bool("compute_uv"), full = c.op().get_bool("full_matrices");
  for (int i = 1; i < 3 && !vectors; ++i) c.set_output(i, PartialShape({0}));
  if (!input.rank_known()) return;
  const PartialShape batch = batch_of(input, 2);
  const int64_t m = input[input.rank() - 2], n = input[input.rank() - 1], values = least(m, n);
  c.set_output(0, batch.concatenated(PartialShape({values})));
  if (!vectors) return;
  c.set_output(1, with_last(batch, m, full ? m : values));
  c.set_output(2, with_last(batch, n, full ? n : values));
}

// --- Gradients --------------------------------------------------------------------------------

// x r^-H for upper triangular r.
Value times_inverse_adjoint(Emitter& e, Value x, Value r) {
  return adjoint_of(e, triangular_solution(e, r, adjoint_of(e, x), false, false));
}

// Of as many columns as q has. Walter and Lehmann, Algorithmic differentiation of linear algebra
// functions, 2018; Roberts and Roberts, QR and LQ decomposition matrix backpropagation algorithms,
// 2020. With complex numbers R's diagonal stays real, which the last term is for.
Value qr_gradient_of_square(Emitter& e, Value q, Value r, Value dq, Value dr) {
  const Value inner = matrix_product(e, q, dq, true);
  const Value outer = matrix_product(e, r, dr, false, true);
  const Value skew = e.add(e.sub(inner, adjoint_of(e, inner)), e.sub(outer, adjoint_of(e, outer)));
  const Value lower = times_inverse_adjoint(e, band_of(e, skew, -1, 0), r);
  Value rest = e.sub(dq, matrix_product(e, q, inner));
  if (is_complex(e.dtype(q))) {
    const Value excess = e.call("MatrixDiagPart", {e.sub(outer, adjoint_of(e, inner))});
    const Value turn = halved(e, e.sub(e.conj(excess), excess));
    rest = e.add(rest, scaled_columns(e, q, turn));
  }
  return e.add(matrix_product(e, q, e.add(dr, lower)), times_inverse_adjoint(e, rest, r));
}

void qr_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const PartialShape shape = c.input_shape(0);
  const int64_t m = shape.rank_known() ? shape[shape.rank() - 2] : kUnknown;
  const int64_t n = shape.rank_known() ? shape[shape.rank() - 1] : kUnknown;
  const bool known = m != kUnknown && n != kUnknown;
  if (c.op().get_bool("full_matrices") && !(known && m <= n)) {
    throw unimplemented("QrGrad not implemented when nrows > ncols and full_matrices is true; ",
                        "input has shape ", shape);
  }
  const Value q = c.output(0), r = c.output(1);
  const Value dr = band_of(e, c.gradient(1), 0, -1);
  if (known && m >= n) return c.set(0, qr_gradient_of_square(e, q, r, c.gradient(0), dr));
  // The columns beyond the square part are Q^H times those of the input.
  const Value none = int_scalar(e, 0), end = last_extent(e, q);
  const Value beyond = columns_of(e, dr, end, Value());
  const Value input = columns_of(e, c.input(0), end, Value());
  const Value dq = e.add(c.gradient(0), matrix_product(e, input, beyond, false, true));
  const Value first =
      qr_gradient_of_square(e, q, columns_of(e, r, none, end), dq, columns_of(e, dr, none, end));
  const Value both[] = {first, matrix_product(e, q, beyond), int_scalar(e, -1)};
  c.set(0, e.call("Concat", both, {}, {}));
}

// Giles 2008, 3.1. The op reads the lower triangle alone.
void eigh_gradient(GradientContext& c) {
  Emitter& e = c.e;
  Value v = c.output(1);
  if (!c.op().get_bool("compute_v")) {
    const Value input = c.input(0);
    v = e.emit("SelfAdjointEig", {&input, 1}, {{"compute_v", true}})[1];
  }
  Value middle = e.call("MatrixDiag", {c.gradient(0)});
  if (c.op().get_bool("compute_v") && c.has_gradient(1)) {
    const Value turn = matrix_product(e, v, c.gradient(1), true);
    middle = e.add(middle, e.mul(inverse_differences(e, c.output(0)), turn));
  }
  const Value whole = matrix_product(e, v, matrix_product(e, middle, v, false, true));
  c.set(0, half_triangle(e, e.add(whole, adjoint_of(e, whole))));
}

// The gradient in the first columns of orthonormal vectors, with what the others have to say of
// them: each turns against all.
Value gradient_of_first(Emitter& e, Value vectors, Value gradient, Value first, Value count) {
  const Value none = int_scalar(e, 0);
  const Value others = columns_of(e, vectors, count, Value());
  const Value of_others = columns_of(e, gradient, count, Value());
  return e.sub(columns_of(e, gradient, none, count),
               matrix_product(e, others, matrix_product(e, of_others, first, true)));
}

struct SvdTerms {
  Emitter& e;
  Value s, u, v, du, dv;

  // Townsend, Differentiating the singular value decomposition, 2016; Wan and Zhang, Automatic
  // differentiation for complex valued SVD, 2019.
  Value gradient(Value ds) const {
    const Value inner_u = matrix_product(e, u, du, true), inner_v = matrix_product(e, v, dv, true);
    const Value inverse = e.call("DivNoNan", {e.const_scalar(e.dtype(s), 1), s});
    const Value f = inverse_differences(e, e.square(s));
    Value diagonal = ds;
    if (is_complex(e.dtype(s))) {
      const Value turn = e.call("MatrixDiagPart", {inner_v});
      diagonal = e.add(diagonal, halved(e, e.mul(inverse, e.sub(e.conj(turn), turn))));
    }
    const Value of_u = scaled_columns(e, twice_hermitian(e.mul(f, inner_u)), s);
    const Value of_v = scaled_rows(e, twice_hermitian(e.mul(f, inner_v)), s);
    const Value middle = e.add(e.call("MatrixDiag", {diagonal}), e.add(of_u, of_v));
    const Value beside_u = scaled_columns(e, e.sub(du, matrix_product(e, u, inner_u)), inverse);
    const Value beside_v = scaled_columns(e, e.sub(dv, matrix_product(e, v, inner_v)), inverse);
    const Value left = e.add(matrix_product(e, u, middle), beside_u);
    return e.add(matrix_product(e, left, v, false, true),
                 matrix_product(e, u, beside_v, false, true));
  }

 private:
  Value twice_hermitian(Value x) const { return e.add(x, adjoint_of(e, x)); }
};

void svd_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value input = c.input(0);
  Value ds = c.gradient(0);
  // Singular values are real numbers, whatever their dtype.
  if (is_complex(c.input_dtype(0))) ds = halved(e, e.add(ds, e.conj(ds)));
  if (!c.op().get_bool("compute_uv")) {
    const std::vector<Value> all = e.emit("Svd", {&input, 1}, {});
    return c.set(0, matrix_product(e, scaled_columns(e, all[1], ds), all[2], false, true));
  }
  SvdTerms terms = {e, c.output(0), c.output(1), c.output(2), Value(), Value()};
  terms.du = c.gradient(1);
  terms.dv = c.gradient(2);
  if (c.op().get_bool("full_matrices")) {
    const Value none = int_scalar(e, 0), count = last_extent(e, terms.s);
    for (auto [vectors, gradient] : {std::pair(&terms.u, &terms.du), {&terms.v, &terms.dv}}) {
      const Value first = columns_of(e, *vectors, none, count);
      *gradient = gradient_of_first(e, *vectors, *gradient, first, count);
      *vectors = first;
    }
  }
  if (!c.has_gradient(1) && !c.has_gradient(2)) {
    return c.set(0, matrix_product(e, scaled_columns(e, terms.u, ds), terms.v, false, true));
  }
  c.set(0, terms.gradient(ds));
}

}  // namespace

void register_linalg_factors_ops(OpRegistry& r) {
  r.op("Qr", HostAccess::kNone)
      .input("input: T")
      .output("q: T")
      .output("r: T")
      .attr("full_matrices: bool = false")
      .attr(kLinalgTypes)
      .shape(qr_shape)
      .gradient(qr_gradient, {"input", "q", "r"})
      .doc(
          R"(QR factors of matrices by Householder's reflections: input = q r, q with orthonormal columns, r upper triangular.

input is [..., m, n]. With k = min(m, n), q is [..., m, k] and r [..., k, n]; with full_matrices they are [..., m, m] and
[..., m, n]. The diagonal of r is real, of either sign. The gradient (Walter and Lehmann 2018; Roberts and Roberts 2020)
needs the first k columns of the input to be independent.
Errors: InvalidArgument for a rank below 2; Unimplemented for the gradient with full_matrices and m > n.)");
  r.op("SelfAdjointEig", HostAccess::kNone)
      .input("input: T")
      .output("e: T")
      .output("v: T")
      .attr("compute_v: bool = true")
      .attr(kLinalgTypes)
      .shape(eigh_shape)
      .gradient(eigh_gradient, {"input", "e", "v"})
      .doc(R"(Eigenvalues and eigenvectors of Hermitian matrices: input v = v diag(e).

input is [..., n, n]; of each matrix the lower triangle is read. e is [..., n], ascending, v is [..., n, n], whose columns
are orthonormal; without compute_v v is empty. The gradient (Giles 2008) is that of the lower triangle. Vectors of an
eigenvalue that occurs twice are no function of the input: their turns among themselves have no gradient.
Errors: InvalidArgument for matrices that are not square; "Self-adjoint eigen decomposition was not successful", naming
the first such matrix of the batch, where one holds NaN or infinity.)");
  r.op("Svd", HostAccess::kNone)
      .input("input: T")
      .output("s: T")
      .output("u: T")
      .output("v: T")
      .attr("compute_uv: bool = true")
      .attr("full_matrices: bool = false")
      .attr(kLinalgTypes)
      .shape(svd_shape)
      .gradient(svd_gradient, {"input", "s", "u", "v"})
      .doc(R"(Singular values and vectors of matrices: input = u diag(s) v^H.

input is [..., m, n]. With k = min(m, n), s is [..., k], descending, u is [..., m, k] and v [..., n, k], with orthonormal
columns; with full_matrices u is [..., m, m] and v [..., n, n]. Without compute_uv u and v are empty. Of a matrix that
holds NaN or infinity all are NaN. The gradient (Giles 2008; Townsend 2016; Wan and Zhang 2019) of vectors needs
singular values that differ and are not zero: what is undefined of it otherwise is 0.
Errors: InvalidArgument for a rank below 2.)");
  r.finish("linalg_factors");
}

}  // namespace treenail
