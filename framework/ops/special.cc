// SPDX-License-Identifier: Apache-2.0
// Special functions: those of one operand, which are the gamma function's logarithm and its
// derivatives, inverses of the error function and of the normal distribution, and scaled Bessel
// functions; of more operands Zeta, Polygamma and the incomplete gamma and beta functions. Loops:
// kernels/cpu/elementwise/{gamma,quantiles,bessel}.cc and kernels/host/special/.
#include <numbers>
#include <string>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

OpDeclaration unary(OpRegistry& r, const char* name) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .output("y: T")
      .attr("T: {half, bfloat16, float, double}")
      .shape(unchanged_shape)
      .elementwise()
      .in_place("x", "y");
  return d;
}

OpDeclaration binary(OpRegistry& r, const char* name, const char* first, const char* second) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input(std::string(first) + ": T")
      .input(std::string(second) + ": T")
      .output("z: T")
      .attr("T: {float, double}")
      .shape(broadcast_binary_shape)
      .elementwise();
  d.in_place(first, "z").in_place(second, "z");
  return d;
}

Value number(GradientContext& c, double value) { return c.e.const_scalar(c.input_dtype(0), value); }
void times(GradientContext& c, Value factor) { c.set(0, c.e.times(c.gradient(), factor)); }

void lgamma_gradient(GradientContext& c) { times(c, c.e.call("Digamma", {c.input(0)})); }
// Polygamma has float and double alone.
void digamma_gradient(GradientContext& c) {
  const Value x = c.e.widened(c.input(0));
  const Value one = c.e.const_scalar(c.e.dtype(x), 1);
  times(c, c.e.cast(c.e.call("Polygamma", {one, x}), c.input_dtype(0)));
}

// The order a and the exponent x of Zeta have no gradient, as in TensorFlow.
void polygamma_gradient(GradientContext& c) {
  if (!c.needed(1)) return;
  const Value next = c.e.add(c.input(0), number(c, 1));
  const Value slope = c.e.call("Polygamma", {next, c.input(1)});
  c.set(1, c.sum_to_input(c.e.times(c.gradient(), slope), 1));
}
void zeta_gradient(GradientContext& c) {
  if (!c.needed(1)) return;
  const Value next = c.e.add(c.input(0), number(c, 1));
  const Value g = c.e.neg(c.e.times(c.gradient(), c.input(0)));
  c.set(1, c.sum_to_input(c.e.times(g, c.e.call("Zeta", {next, c.input(1)})), 1));
}

// By Pow, whose rule passes infinite results (docs/decisions/poles.md).
Value square_of_result(GradientContext& c) { return c.e.call("Pow", {c.output(0), number(c, 2)}); }
// 1 over the density at the result y: sqrt(pi) / 2 e^(y²), and sqrt(2 pi) e^(y² / 2).
void erfinv_gradient(GradientContext& c) {
  const double half_root_pi = 0.5 / std::numbers::inv_sqrtpi;
  times(c, c.e.mul(number(c, half_root_pi), c.e.call("Exp", {square_of_result(c)})));
}
void ndtri_gradient(GradientContext& c) {
  const double root_two_pi = std::numbers::sqrt2 / std::numbers::inv_sqrtpi;
  const Value half_square = c.e.mul(number(c, 0.5), square_of_result(c));
  times(c, c.e.mul(number(c, root_two_pi), c.e.call("Exp", {half_square})));
}

// I0' = I1, I1' = I0 - I1 / x, and both times e^-|x|.
void bessel_i0e_gradient(GradientContext& c) {
  const Value x = c.input(0), sign = c.e.call("Sign", {x});
  const Value slope = c.e.sub(c.e.call("BesselI1e", {x}), c.e.mul(sign, c.output(0)));
  times(c, slope);
}
void bessel_i1e_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value x = c.input(0), y = c.output(0), sign = e.call("Sign", {x});
  const Value is_zero = e.call("Equal", {x, number(c, 0)});
  const Value divisor = e.call("Select", {is_zero, number(c, 1), x});
  const Value quotient = e.call("Select", {is_zero, number(c, 0.5), e.div(y, divisor)});
  times(c, e.sub(e.sub(e.call("BesselI0e", {x}), e.mul(sign, y)), quotient));
}

// x^(a - 1) e^-x / gamma(a), of Igamma in x.
Value gamma_density(GradientContext& c) {
  Emitter& e = c.e;
  const Value a = c.input(0), x = c.input(1);
  const Value power = e.mul(e.sub(a, number(c, 1)), e.call("Log", {x}));
  return e.call("Exp", {e.sub(e.sub(power, x), e.call("Lgamma", {a}))});
}
void set_gamma_gradient(GradientContext& c, Value g) {
  if (c.needed(0)) {
    const Value slope = c.e.call("IgammaGradA", {c.input(0), c.input(1)});
    c.set(0, c.sum_to_input(c.e.times(g, slope), 0));
  }
  if (c.needed(1)) c.set(1, c.sum_to_input(c.e.times(g, gamma_density(c)), 1));
}
void igamma_gradient(GradientContext& c) { set_gamma_gradient(c, c.gradient()); }
void igammac_gradient(GradientContext& c) { set_gamma_gradient(c, c.e.neg(c.gradient())); }

// log x - digamma(a), by which the density's logarithm grows with a.
Value density_growth(GradientContext& c) {
  return c.e.sub(c.e.call("Log", {c.input(1)}), c.e.call("Digamma", {c.input(0)}));
}
void igamma_grad_a_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient();
  if (c.needed(0)) {
    const Value slope = e.call("IgammaGradAA", {c.input(0), c.input(1)});
    c.set(0, c.sum_to_input(e.times(g, slope), 0));
  }
  if (c.needed(1)) {
    const Value slope = e.times(e.times(g, gamma_density(c)), density_growth(c));
    c.set(1, c.sum_to_input(slope, 1));
  }
}
void igamma_grad_aa_gradient(GradientContext& c) {
  Emitter& e = c.e;
  if (c.needed(0)) {
    throw unimplemented(
        "the third derivative of Igamma and Igammac with respect to a is not there; up to the "
        "second all are, and any number with respect to x");
  }
  if (!c.needed(1)) return;
  const Value g = e.times(c.gradient(), gamma_density(c)), growth = density_growth(c);
  const Value curve = e.call("Polygamma", {number(c, 1), c.input(0)});
  const Value slope = e.sub(e.times(e.times(g, growth), growth), e.times(g, curve));
  c.set(1, c.sum_to_input(slope, 1));
}

// x^(a - 1) (1 - x)^(b - 1) / beta(a, b); a and b have no gradient, as in TensorFlow.
void betainc_gradient(GradientContext& c) {
  if (!c.needed(2)) return;
  Emitter& e = c.e;
  const Value a = c.input(0), b = c.input(1), x = c.input(2);
  const auto lgamma = [&](Value v) { return e.call("Lgamma", {v}); };
  const Value left = e.mul(e.sub(a, number(c, 1)), e.call("Log", {x}));
  const Value right = e.mul(e.sub(b, number(c, 1)), e.call("Log1p", {e.neg(x)}));
  const Value scale = e.sub(lgamma(e.add(a, b)), e.add(lgamma(a), lgamma(b)));
  const Value density = e.call("Exp", {e.add(e.add(left, right), scale)});
  c.set(2, c.sum_to_input(e.times(c.gradient(), density), 2));
}

void betainc_shape(ShapeContext& c) {
  const PartialShape both = ShapeContext::broadcast(c.input(0), c.input(1));
  c.set_output(0, ShapeContext::broadcast(both, c.input(2)));
}

void declare_incomplete(OpRegistry& r) {
  binary(r, "Igamma", "a", "x")
      .gradient(igamma_gradient, {"a", "x"})
      .doc(
          "Lower regularised incomplete gamma function: the integral of t ** (a - 1) e ** -t from "
          "0 "
          "to x over gamma(a).\n\n"
          "Shapes broadcast as in NumPy. NaN for a of 0 or less, and for negative x.");
  binary(r, "Igammac", "a", "x")
      .gradient(igammac_gradient, {"a", "x"})
      .doc(
          "Upper regularised incomplete gamma function, 1 - Igamma, accurate where that is near "
          "1.\n\n"
          "Shapes broadcast as in NumPy. NaN for a of 0 or less, and for negative x.");
  binary(r, "IgammaGradA", "a", "x")
      .gradient(igamma_grad_a_gradient, {"a", "x"})
      .doc(
          "Derivative of Igamma with respect to a.\n\n"
          "Shapes broadcast as in NumPy.");
  binary(r, "IgammaGradAA", "a", "x")
      .gradient(igamma_grad_aa_gradient, {"a", "x"})
      .doc(
          "Second derivative of Igamma with respect to a, of which there is no further one: "
          "Unimplemented.\n\n"
          "Shapes broadcast as in NumPy.");
  OpDeclaration beta = r.op("Betainc", HostAccess::kNone);
  beta.input("a: T").input("b: T").input("x: T").output("z: T").attr("T: {float, double}");
  beta.shape(betainc_shape).elementwise().in_place("a", "z").in_place("b", "z").in_place("x", "z");
  beta.gradient(betainc_gradient, {"a", "b", "x"})
      .doc(
          "Regularised incomplete beta function: the integral of t ** (a - 1) (1 - t) ** (b - 1) "
          "from 0 to x over beta(a, b).\n\n"
          "Shapes broadcast as in NumPy. NaN unless a and b are positive and x is in [0, 1]. a and "
          "b have no gradient.");
}

void declare_gamma(OpRegistry& r) {
  unary(r, "Lgamma")
      .gradient(lgamma_gradient, {"x"})
      .doc(
          "Logarithm of |gamma(x)|; infinite at 0 and negative whole numbers.\n\n"
          "float within 2 units in the last place.");
  unary(r, "Digamma")
      .gradient(digamma_gradient, {"x"})
      .doc(
          "Derivative of Lgamma; infinity at 0 and negative whole numbers, as in TensorFlow.\n\n"
          "float within 2 units in the last place.");
  binary(r, "Polygamma", "a", "x")
      .gradient(polygamma_gradient, {"a", "x"})
      .doc(
          "Derivative of order a + 1 of Lgamma at x; NaN unless a is a whole number of 0 or "
          "more.\n\n"
          "Shapes broadcast as in NumPy. a has no gradient.");
  binary(r, "Zeta", "x", "q")
      .gradient(zeta_gradient, {"x", "q"})
      .doc(
          "Hurwitz zeta function: the sum of (q + n) ** -x over n = 0, 1, …; infinite for x = 1, "
          "NaN below.\n\n"
          "Shapes broadcast as in NumPy. Where q is 0 or a negative whole number it is infinite, "
          "where q is another negative number NaN unless x is whole. x has no gradient.");
}

}  // namespace

void register_special_ops(OpRegistry& r) {
  declare_gamma(r);
  declare_incomplete(r);
  unary(r, "Erfinv")
      .gradient(erfinv_gradient, {"y"})
      .doc("Inverse of Erf: infinite at -1 and 1, NaN beyond.");
  unary(r, "Ndtri")
      .gradient(ndtri_gradient, {"y"})
      .doc(
          "Quantile of the standard normal distribution: infinite for 0 and 1, NaN below and "
          "above.");
  unary(r, "BesselI0e")
      .gradient(bessel_i0e_gradient, {"x", "y"})
      .doc("Modified Bessel function of order 0, scaled: e ** -|x| I0(x).");
  unary(r, "BesselI1e")
      .gradient(bessel_i1e_gradient, {"x", "y"})
      .doc("Modified Bessel function of order 1, scaled: e ** -|x| I1(x).");
  r.finish("special");
}

}  // namespace treenail
