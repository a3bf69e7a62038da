// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of the matrices in the last two axes, Hermitian or not. How they are
// computed: kernels/host/linalg. Of Hermitian ones: linalg_factors.cc.
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/complex_types.h"
#include "framework/ops/linalg_rules.h"

namespace treenail {
namespace {

void eig_shape(ShapeContext& c) {
  const DType of_input = c.op().input_type(0), of_output = c.op().output_type(0);
  check_complex_types(of_output, is_complex(of_input) ? part_type(of_input) : of_input);
  const PartialShape input = square_matrices(c, 0);
  c.set_output(0, input.rank_known() ? input.sub(0, input.rank() - 1) : PartialShape());
  c.set_output(1, c.op().get_bool("compute_v") ? input : PartialShape({0}));
}

// --- Gradients --------------------------------------------------------------------------------

Value sum_of_rows(Emitter& e, Value matrices) {
  return e.call("Sum", {matrices, int_scalar(e, -2)}, {{"keep_dims", true}});
}

// In each column 1 at the element that was made real and positive, 0 elsewhere.
Value real_elements(Emitter& e, Value v) {
  const DType part = part_type(e.dtype(v));
  const Value size = e.call("ComplexAbs", {v}, {{"Tout", part}});
  const Value largest = e.call("Max", {size, int_scalar(e, -2)}, {{"keep_dims", true}});
  const Value least = e.mul(largest, e.const_scalar(part, 0.99));
  const Value among = e.cast(e.call("GreaterEqual", {size, least}), DType::kInt32);
  const Value first = e.call("ArgMax", {among, int_scalar(e, -2)});
  const Value chosen =
      e.call("OneHot", {first, last_extent(e, v), int_scalar(e, 1), int_scalar(e, 0)});
  return e.cast(adjoint_of(e, chosen), e.dtype(v));
}

// A gradient in vectors of length 1, each with one real element, in terms of changes that are free
// to change both.
Value of_normalized(Emitter& e, Value v, Value g) {
  const Value inner = sum_of_rows(e, e.mul(e.conj(g), v));
  const Value along = halved(e, e.add(inner, e.conj(inner)));
  const Value turn = halved(e, e.sub(inner, e.conj(inner)));
  const Value real = real_elements(e, v);
  const Value size = sum_of_rows(e, e.mul(real, v));
  return e.add(e.sub(g, e.mul(v, along)), e.mul(real, e.div(turn, size)));
}

// Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, On the computation of complex-valued
// gradients with application to statistically optimum beamforming, 2017, 4.17 and 4.18.
void eig_gradient(GradientContext& c) {
  Emitter& e = c.e;
  Value v = c.output(1);
  if (!c.op().get_bool("compute_v")) {
    const Value input = c.input(0);
    const NamedAttrs attrs = {{"compute_v", true}, {"Tout", c.op().output_type(0)}};
    v = e.emit("Eig", {&input, 1}, attrs)[1];
  }
  Value middle = e.call("MatrixDiag", {c.gradient(0)});
  if (c.op().get_bool("compute_v") && c.has_gradient(1)) {
    const Value g = of_normalized(e, v, c.gradient(1));
    const Value inverse = e.conj(inverse_differences(e, c.output(0)));
    middle = e.add(middle, e.mul(inverse, matrix_product(e, v, g, true)));
  }
  const Value right = matrix_product(e, middle, v, false, true);
  const Value result = e.call("MatrixSolve", {v, right}, {{"adjoint", true}});
  const DType dtype = c.input_dtype(0);
  c.set(0, is_complex(dtype) ? result : e.call("Real", {result}, {{"Tout", dtype}}));
}

}  // namespace

void register_linalg_eig_ops(OpRegistry& r) {
  r.op("Eig", HostAccess::kNone)
      .input("input: T")
      .output("e: Tout")
      .output("v: Tout")
      .attr("compute_v: bool = true")
      .attr(kLinalgTypes)
      .attr("Tout: {complex64, complex128} = complex64")
      .shape(eig_shape)
      .gradient(eig_gradient, {"input", "e", "v"})
      .doc(R"(Eigenvalues and right eigenvectors of square matrices: input v = v diag(e).

input is [..., n, n], e [..., n] and v [..., n, n], whose columns are the vectors; without compute_v v is empty. Tout is
complex64 for float32 and complex64, complex128 for float64 and complex128. Eigenvalues ascend by their real part and
where these are equal, but for rounding, by their imaginary part. Each vector has length 1, and the first of its elements
that are within a hundredth of the largest one is real and positive. The gradient (Boeddeker et al. 2017) is that of
vectors so normalised; it needs eigenvalues that differ: what is undefined of it otherwise is 0, and without n
independent vectors it is refused as not invertible or has no meaning.
Errors: InvalidArgument for matrices that are not square; for a Tout that does not go with T; "Eigen decomposition was not
successful", naming the first such matrix of the batch, where one holds NaN or infinity.)");
  r.finish("linalg_eig");
}

}  // namespace treenail
