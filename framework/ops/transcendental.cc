// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, trigonometric and hyperbolic functions, and the error function, of one
// operand. For complex operands a gradient multiplies by the conjugate of the derivative, as
// TensorFlow's do. Loops: kernels/cpu/elementwise/transcendental.cc and
// kernels/host/elementwise/libm.cc, kernels/host/elementwise/complex_functions.cc.
#include <cmath>
#include <numbers>

#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kFloatsAndComplex[] = "T: {half, bfloat16, float, double, complex64, complex128}";
constexpr char kFloats[] = "T: {half, bfloat16, float, double}";

OpDeclaration function(OpRegistry& r, const char* name, const char* types, const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .output("y: T")
      .attr(types)
      .shape(unchanged_shape)
      .elementwise()
      .in_place("x", "y");
  d.doc(doc);
  return d;
}

// What the rules below are written with: the conjugates of x and y, and a few ops by name.
class Rule {
 public:
  explicit Rule(GradientContext& c) : c_(c), e_(c.e) {}
  Value x() const { return e_.conj(c_.input(0)); }
  Value y() const { return e_.conj(c_.output(0)); }
  Value of(const char* op, Value v) const { return e_.call(op, {v}); }
  Value number(double value) const { return e_.const_scalar(c_.input_dtype(0), value); }
  Value one_minus(Value v) const { return e_.sub(number(1), v); }
  Value one_plus(Value v) const { return e_.add(number(1), v); }
  Value minus_one(Value v) const { return e_.sub(v, number(1)); }
  Value square(Value v) const { return e_.square(v); }
  // The gradient is g * factor, or g / divisor. Also sine and cosine have places where they are not
  // defined: infinities.
  void times(Value factor) const { c_.set(0, e_.times(c_.gradient(), factor)); }
  void over(Value divisor) const { c_.set(0, e_.over(c_.gradient(), divisor)); }
  void minus_over(Value divisor) const { c_.set(0, e_.neg(e_.over(c_.gradient(), divisor))); }

 private:
  GradientContext& c_;
  Emitter& e_;
};

void exp_gradient(GradientContext& c) { Rule(c).times(Rule(c).y()); }
void expm1_gradient(GradientContext& c) {
  const Rule r(c);
  r.times(r.of("Exp", r.x()));
}
void log_gradient(GradientContext& c) { Rule(c).over(Rule(c).x()); }
void log1p_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.one_plus(r.x()));
}
void sin_gradient(GradientContext& c) {
  const Rule r(c);
  r.times(r.of("Cos", r.x()));
}
void cos_gradient(GradientContext& c) {
  const Rule r(c);
  r.times(r.of("Neg", r.of("Sin", r.x())));
}
void tan_gradient(GradientContext& c) {
  const Rule r(c);
  const Value cosine = r.of("Cos", r.x());
  c.set(0, c.e.over(c.e.over(c.gradient(), cosine), cosine));
}
void asin_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.of("Sqrt", r.one_minus(r.square(r.x()))));
}
void acos_gradient(GradientContext& c) {
  const Rule r(c);
  r.minus_over(r.of("Sqrt", r.one_minus(r.square(r.x()))));
}
void atan_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.one_plus(r.square(r.x())));
}
void sinh_gradient(GradientContext& c) {
  const Rule r(c);
  r.times(r.of("Cosh", r.x()));
}
void cosh_gradient(GradientContext& c) {
  const Rule r(c);
  r.times(r.of("Sinh", r.x()));
}
void tanh_gradient(GradientContext& c) {
  c.set(0, c.e.call("TanhGrad", {Rule(c).y(), c.gradient()}));
}
void asinh_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.of("Cosh", r.y()));
}
void acosh_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.of("Sinh", r.y()));
}
void atanh_gradient(GradientContext& c) {
  const Rule r(c);
  r.over(r.one_minus(r.square(r.x())));
}
void sigmoid_gradient(GradientContext& c) {
  c.set(0, c.e.call("SigmoidGrad", {Rule(c).y(), c.gradient()}));
}

// d erf(x) = 2/sqrt(pi) exp(-x²) dx.
void error_function_gradient(GradientContext& c, double factor) {
  const Rule r(c);
  const Value density = r.of("Exp", r.of("Neg", r.square(r.x())));
  r.times(c.e.mul(r.number(factor * 2.0 * std::numbers::inv_sqrtpi), density));
}
void erf_gradient(GradientContext& c) { error_function_gradient(c, 1); }
void erfc_gradient(GradientContext& c) { error_function_gradient(c, -1); }

// TanhGrad(y, dy) = dy (1 - y²) and SigmoidGrad(y, dy) = dy y (1 - y): one sweep through memory
// instead of three.
OpDeclaration output_gradient(OpRegistry& r, const char* name) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("y: T").input("dy: T").output("dx: T").attr(kFloatsAndComplex).elementwise();
  d.shape([](ShapeContext& c) {
    c.set_output(0, ShapeContext::merge(c.input(0), c.input(1), "the shapes of y and dy"));
  });
  d.in_place("y", "dx").in_place("dy", "dx");
  return d;
}

void tanh_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value y = e.conj(c.input(0)), g = c.gradient();
  if (c.needed(0)) {
    const Value minus_two_y = e.mul(e.const_scalar(c.input_dtype(0), -2), y);
    c.set(0, e.mul(g, e.mul(minus_two_y, e.conj(c.input(1)))));
  }
  if (c.needed(1)) c.set(1, e.call("TanhGrad", {y, g}));
}
void sigmoid_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value y = e.conj(c.input(0)), g = c.gradient();
  if (c.needed(0)) {
    const Value slope = e.sub(e.const_scalar(c.input_dtype(0), 1), e.add(y, y));
    c.set(0, e.mul(g, e.mul(slope, e.conj(c.input(1)))));
  }
  if (c.needed(1)) c.set(1, e.call("SigmoidGrad", {y, g}));
}

void declare_exponentials(OpRegistry& r) {
  function(r, "Exp", kFloatsAndComplex, "Exponential e ** x.").gradient(exp_gradient, {"y"});
  function(r, "Expm1", kFloatsAndComplex, "e ** x - 1, accurate near 0.")
      .gradient(expm1_gradient, {"x"});
  function(r, "Log", kFloatsAndComplex, "Natural logarithm; -inf for 0, NaN for negative numbers.")
      .gradient(log_gradient, {"x"});
  function(r, "Log1p", kFloatsAndComplex, "log(1 + x), accurate near 0.")
      .gradient(log1p_gradient, {"x"});
  function(r, "Sigmoid", kFloatsAndComplex, "Logistic function 1 / (1 + e ** -x).")
      .gradient(sigmoid_gradient, {"y"});
  function(r, "Erf", kFloats,
           "Error function: 2/sqrt(pi) times the integral of e ** (-t * t) from 0 to x.")
      .gradient(erf_gradient, {"x"});
  function(r, "Erfc", kFloats, "Complementary error function 1 - erf(x), accurate for large x.")
      .gradient(erfc_gradient, {"x"});
}

void declare_trigonometry(OpRegistry& r) {
  function(r, "Sin", kFloatsAndComplex, "Sine of x radians.").gradient(sin_gradient, {"x"});
  function(r, "Cos", kFloatsAndComplex, "Cosine of x radians.").gradient(cos_gradient, {"x"});
  function(r, "Tan", kFloatsAndComplex, "Tangent of x radians.").gradient(tan_gradient, {"x"});
  function(r, "Asin", kFloatsAndComplex,
           "Angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].")
      .gradient(asin_gradient, {"x"});
  function(r, "Acos", kFloatsAndComplex, "Angle in [0, pi] whose cosine is x; NaN outside [-1, 1].")
      .gradient(acos_gradient, {"x"});
  function(r, "Atan", kFloatsAndComplex, "Angle in (-pi/2, pi/2) whose tangent is x.")
      .gradient(atan_gradient, {"x"});
}

void declare_hyperbolic(OpRegistry& r) {
  function(r, "Sinh", kFloatsAndComplex, "Hyperbolic sine.").gradient(sinh_gradient, {"x"});
  function(r, "Cosh", kFloatsAndComplex, "Hyperbolic cosine.").gradient(cosh_gradient, {"x"});
  function(r, "Tanh", kFloatsAndComplex, "Hyperbolic tangent.").gradient(tanh_gradient, {"y"});
  function(r, "Asinh", kFloatsAndComplex, "Inverse hyperbolic sine.")
      .gradient(asinh_gradient, {"y"});
  function(r, "Acosh", kFloatsAndComplex, "Inverse hyperbolic cosine; NaN below 1.")
      .gradient(acosh_gradient, {"y"});
  function(r, "Atanh", kFloatsAndComplex, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
      .gradient(atanh_gradient, {"x"});
}

}  // namespace

void register_transcendental_ops(OpRegistry& r) {
  declare_exponentials(r);
  declare_trigonometry(r);
  declare_hyperbolic(r);
  output_gradient(r, "TanhGrad")
      .gradient(tanh_grad_gradient, {"y", "dy"})
      .doc("Gradient of Tanh from its output: dy * (1 - y * y).");
  output_gradient(r, "SigmoidGrad")
      .gradient(sigmoid_grad_gradient, {"y", "dy"})
      .doc("Gradient of Sigmoid from its output: dy * y * (1 - y).");
  r.finish("transcendental");
}

}  // namespace treenail
