// SPDX-License-Identifier: Apache-2.0
// Algebraic functions of one operand: sign and size, powers and roots, rounding. Exponentials,
// logarithms and trigonometry: transcendental.cc. Loops: kernels/cpu/elementwise/unary.cc, and
// kernels/host/ for complex numbers.
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/complex_types.h"
#include "framework/ops/value_arithmetic.h"

namespace treenail {
namespace {

constexpr char kReals[] = "T: {half, bfloat16, float, double, int8, int16, int32, int64}";
constexpr char kSignedAndComplex[] =
    "T: {half, bfloat16, float, double, int8, int16, int32, int64, complex64, complex128}";
constexpr char kFloatsAndComplex[] = "T: {half, bfloat16, float, double, complex64, complex128}";
constexpr char kFloats[] = "T: {half, bfloat16, float, double}";

OpDeclaration unary(OpRegistry& r, const char* name, const char* types,
                    void (*shape)(ShapeContext&) = unchanged_shape) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T").output("y: T").attr(types).shape(shape).elementwise().in_place("x", "y");
  return d;
}

Value scaled(GradientContext& c, double factor, Value x) {
  return c.e.mul(c.e.const_scalar(c.input_dtype(0), factor), x);
}

void abs_gradient(GradientContext& c) {
  c.set(0, c.e.mul(c.gradient(), c.e.call("Sign", {c.input(0)})));
}
void neg_gradient(GradientContext& c) { c.set(0, c.e.neg(c.gradient())); }

// Of real numbers a step: 0. Of complex ones y = x / |x| turns with x: what of the gradient lies
// along y is lost, the rest over |x| stays; 0 at 0.
void sign_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const DType dtype = c.input_dtype(0);
  if (dtype != DType::kComplex64 && dtype != DType::kComplex128) {
    return c.set(0, e.zeros_like(c.gradient()));
  }
  const NamedAttrs part = {{"Tout", part_type(dtype)}}, whole = {{"Tout", dtype}};
  const Value none = e.const_scalar(part_type(dtype), 0);
  const auto complex = [&](Value real) { return e.call("Complex", {real, none}, whole); };
  const Value y = c.output(0), g = c.gradient();
  const Value along = complex(e.call("Real", {e.mul(e.conj(y), g)}, part));
  const Value size = complex(e.call("ComplexAbs", {c.input(0)}, part));
  c.set(0, e.call("DivNoNan", {e.sub(g, e.mul(y, along)), size}));
}

// y = 1/x: -g y².
void reciprocal_gradient(GradientContext& c) {
  const Value y = c.e.conj(c.output(0));
  c.set(0, c.e.times(c.e.times(c.e.neg(c.gradient()), y), y));
}
void square_gradient(GradientContext& c) {
  c.set(0, c.e.mul(c.gradient(), scaled(c, 2, c.e.conj(c.input(0)))));
}
void sqrt_gradient(GradientContext& c) {
  c.set(0, c.e.over(scaled(c, 0.5, c.gradient()), c.e.conj(c.output(0))));
}
// y = x^(-1/2): -g y³/2.
void rsqrt_gradient(GradientContext& c) {
  const Value y = c.e.conj(c.output(0));
  const Value g = scaled(c, -0.5, c.gradient());
  c.set(0, c.e.times(c.e.times(c.e.times(g, y), y), y));
}

}  // namespace

void register_unary_ops(OpRegistry& r) {
  unary(r, "Abs", kReals, unary_value_shape<absolute_value>)
      .gradient(abs_gradient, {"x"})
      .doc(
          "Absolute value |x|; of the lowest integer the lowest integer itself.\n\n"
          "For complex numbers see ComplexAbs.");
  unary(r, "Neg", kSignedAndComplex, unary_value_shape<negative_value>)
      .gradient(neg_gradient)
      .doc("Negation -x.");
  unary(r, "Sign", kSignedAndComplex)
      .gradient(sign_gradient, {"x", "y"})
      .doc(
          "Sign: -1, 0 or 1; x / |x| for complex numbers, and 0 where x is 0.\n\n"
          "NaN stays NaN. The gradient is 0 for real numbers; for complex ones it is that of x / "
          "|x|, and 0 where x is 0.");
  unary(r, "Reciprocal", kFloatsAndComplex)
      .gradient(reciprocal_gradient, {"y"})
      .doc("Reciprocal 1 / x.");
  unary(r, "Square", "T: numbertype")
      .gradient(square_gradient, {"x"})
      .doc("Square x * x.\n\nIntegers wrap around.");
  unary(r, "Sqrt", kFloatsAndComplex)
      .gradient(sqrt_gradient, {"y"})
      .doc("Square root; NaN for negative numbers.");
  unary(r, "Rsqrt", kFloatsAndComplex)
      .gradient(rsqrt_gradient, {"y"})
      .doc("Reciprocal square root 1 / sqrt(x).");
  unary(r, "Floor", kFloats).not_differentiable().doc("Largest whole number not above x.");
  unary(r, "Ceil", kFloats).not_differentiable().doc("Smallest whole number not below x.");
  unary(r, "Round", "T: {half, bfloat16, float, double, int8, int16, int32, int64}")
      .not_differentiable()
      .doc("Nearest whole number, halves to the even one.\n\nIntegers are unchanged.");
  unary(r, "Rint", kFloats)
      .not_differentiable()
      .doc("Nearest whole number, halves to the even one.");
  r.finish("unary");
}

}  // namespace treenail
