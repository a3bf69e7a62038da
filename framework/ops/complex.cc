// SPDX-License-Identifier: Apache-2.0
// Complex numbers: their parts, conjugate, angle and absolute value. Arithmetic and functions of
// complex numbers are the same ops as for real ones. Loops:
// kernels/host/elementwise/complex_functions.cc.
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/complex_types.h"

namespace treenail {
namespace {

void complex_shape(ShapeContext& c) {
  check_complex_types(c.op().output_type(0), c.op().input_type(0));
  broadcast_binary_shape(c);
}

void part_shape(ShapeContext& c) {
  check_complex_types(c.op().input_type(0), c.op().output_type(0));
  unchanged_shape(c);
}

Value make_complex(GradientContext& c, Value real, Value imag) {
  return c.e.call("Complex", {real, imag}, {{"Tout", complex_type(c.e.dtype(real))}});
}
Value zero(GradientContext& c, DType dtype) { return c.e.const_scalar(dtype, 0); }

void complex_gradient(GradientContext& c) {
  const NamedAttrs type = {{"Tout", c.input_dtype(0)}};
  const Value g = c.gradient();
  if (c.needed(0)) c.set(0, c.sum_to_input(c.e.call("Real", {g}, type), 0));
  if (c.needed(1)) c.set(1, c.sum_to_input(c.e.call("Imag", {g}, type), 1));
}

void real_gradient(GradientContext& c) {
  const Value g = c.gradient();
  c.set(0, make_complex(c, g, zero(c, c.e.dtype(g))));
}

void imag_gradient(GradientContext& c) {
  const Value g = c.gradient();
  c.set(0, make_complex(c, zero(c, c.e.dtype(g)), g));
}

void conj_gradient(GradientContext& c) { c.set(0, c.e.conj(c.gradient())); }

// d angle = Im(dz / z): the gradient is i g z / |z|² = i g / conj(z).
void angle_gradient(GradientContext& c) {
  const Value g = c.gradient();
  const Value ig = make_complex(c, zero(c, c.e.dtype(g)), g);
  c.set(0, c.e.over(ig, c.e.conj(c.input(0))));
}

// d|z| along z / |z|; 0 at 0.
void complex_abs_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient();
  const Value none = zero(c, e.dtype(g));
  const Value direction = e.call("DivNoNan", {c.input(0), make_complex(c, c.output(0), none)});
  c.set(0, e.mul(make_complex(c, g, none), direction));
}

OpDeclaration part(OpRegistry& r, const char* name, const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("input: T").output("output: Tout").attr("T: {complex64, complex128} = complex64");
  d.attr("Tout: {float, double} = float").shape(part_shape).elementwise().doc(doc);
  return d;
}

}  // namespace

void register_complex_ops(OpRegistry& r) {
  r.op("Complex", HostAccess::kNone)
      .input("real: T")
      .input("imag: T")
      .output("out: Tout")
      .attr("T: {float, double} = float")
      .attr("Tout: {complex64, complex128} = complex64")
      .shape(complex_shape)
      .elementwise()
      .gradient(complex_gradient)
      .doc(
          "Complex numbers from their real and imaginary parts.\n\n"
          "Shapes broadcast as in NumPy. Tout is complex64 for float32, complex128 for float64.");
  part(r, "Real", "Real part.\n\nTout is float32 for complex64, float64 for complex128.")
      .gradient(real_gradient);
  part(r, "Imag", "Imaginary part.\n\nTout is float32 for complex64, float64 for complex128.")
      .gradient(imag_gradient);
  part(r, "Angle",
       "Angle in radians, in [-pi, pi].\n\nTout is float32 for complex64, float64 for complex128.")
      .gradient(angle_gradient, {"input"});
  part(r, "ComplexAbs", "Absolute value.\n\nTout is float32 for complex64, float64 for complex128.")
      .gradient(complex_abs_gradient, {"input", "output"});
  r.op("Conj", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: {complex64, complex128} = complex64")
      .shape(unchanged_shape)
      .elementwise()
      .in_place("input", "output")
      .gradient(conj_gradient)
      .doc("Complex conjugate.");
  r.finish("complex");
}

}  // namespace treenail
