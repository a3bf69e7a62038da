// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two broadcast operands, and the sum of many tensors.
// One operand: unary.cc, transcendental.cc. Comparisons: comparison.cc. Loops:
// kernels/cpu/{arithmetic,division,power}.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/value_arithmetic.h"

namespace treenail {
namespace {

constexpr char kNumbers[] = "T: numbertype";
constexpr char kReals[] = "T: realnumbertype";
constexpr char kFloats[] = "T: {half, bfloat16, float, double}";
constexpr char kFloatsAndComplex[] = "T: {half, bfloat16, float, double, complex64, complex128}";

OpDeclaration binary(OpRegistry& r, const char* name, const char* types,
                     void (*shape)(ShapeContext&) = broadcast_binary_shape) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T").input("y: T").output("z: T").attr(types).shape(shape).elementwise();
  d.in_place("x", "z").in_place("y", "z");
  return d;
}

// Sets the gradients of x and y, each given at the broadcast shape, widened or not.
void set_broadcast(GradientContext& c, Value x, Value y) {
  const auto set = [&](int i, Value gradient) {
    if (!c.needed(i) || !gradient.valid()) return;
    c.set(i, c.e.cast(c.sum_to_input(gradient, i), c.input_dtype(i)));
  };
  set(0, x);
  set(1, y);
}

Value zero(GradientContext& c) { return c.e.const_scalar(c.input_dtype(0), 0); }

// The gradient and the operands' conjugates, of half and bfloat16 as float: squares, quotients and
// powers on the way to a gradient leave their range where the gradient itself does not.
struct Widened {
  Value g, x, y;
  explicit Widened(GradientContext& c)
      : g(c.e.widened(c.gradient())),
        x(c.e.widened(c.e.conj(c.input(0)))),
        y(c.e.widened(c.e.conj(c.input(1)))) {}
};

void add_gradient(GradientContext& c) { set_broadcast(c, c.gradient(), c.gradient()); }

void sub_gradient(GradientContext& c) {
  const Value g = c.gradient();
  set_broadcast(c, g, c.needed(1) ? c.e.neg(g) : Value());
}

void mul_gradient(GradientContext& c) {
  const Value g = c.gradient();
  set_broadcast(c, c.needed(0) ? c.e.mul(g, c.e.conj(c.input(1))) : Value(),
                c.needed(1) ? c.e.mul(g, c.e.conj(c.input(0))) : Value());
}

void div_gradient(GradientContext& c) {
  if (!c.needed(1)) {
    return set_broadcast(c, c.e.over(c.gradient(), c.e.conj(c.input(1))), Value());
  }
  const Widened w(c);
  const Value gx = c.e.over(w.g, w.y);
  set_broadcast(c, gx, c.e.neg(c.e.times(gx, c.e.div(w.x, w.y))));
}

void div_no_nan_gradient(GradientContext& c) {
  const Widened w(c);
  const auto divide = [&](Value a, Value b) { return c.e.call("DivNoNan", {a, b}); };
  const Value gx = divide(w.g, w.y);
  set_broadcast(c, gx, c.needed(1) ? c.e.neg(c.e.times(gx, divide(w.x, w.y))) : Value());
}

// x * y, 0 where y is 0: y alone decides, as in TensorFlow.
void mul_no_nan_gradient(GradientContext& c) {
  const Value g = c.gradient(), x = c.e.conj(c.input(0)), y = c.e.conj(c.input(1));
  set_broadcast(c, c.needed(0) ? c.e.call("MulNoNan", {g, y}) : Value(),
                c.needed(1) ? c.e.times(g, x) : Value());
}

// What arrives at the quotient of a gradient and a divisor goes on to the gradient whatever that
// is; to the divisor only where there was a gradient.
void quotient_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient(), x = e.conj(c.input(0)), y = e.conj(c.input(1));
  const auto over = [&](Value a) { return e.call("QuotientGrad", {a, y}); };
  set_broadcast(c, c.needed(0) ? over(g) : Value(),
                c.needed(1) ? e.neg(over(over(e.call("MulNoNan", {g, x})))) : Value());
}

void floor_mod_gradient(GradientContext& c) {
  const Value g = c.gradient();
  Value gy;
  if (c.needed(1)) gy = c.e.neg(c.e.times(g, c.e.call("FloorDiv", {c.input(0), c.input(1)})));
  set_broadcast(c, g, gy);
}

void mod_gradient(GradientContext& c) {
  const Value g = c.gradient();
  Value gy;
  if (c.needed(1)) {
    gy = c.e.neg(c.e.times(g, c.e.call("TruncateDiv", {c.input(0), c.input(1)})));
  }
  set_broadcast(c, g, gy);
}

void squared_difference_gradient(GradientContext& c) {
  const Value two = c.e.const_scalar(c.input_dtype(0), 2);
  const Value gx = c.e.mul(c.e.mul(two, c.gradient()), c.e.sub(c.input(0), c.input(1)));
  set_broadcast(c, gx, c.needed(1) ? c.e.neg(gx) : Value());
}

// The operand that is the result gets the gradient; x where they are equal.
void extremum_gradient(GradientContext& c, const char* x_wins) {
  const Value g = c.gradient();
  const Value x_is_result = c.e.call(x_wins, {c.input(0), c.input(1)});
  set_broadcast(c, c.needed(0) ? c.e.call("Select", {x_is_result, g, zero(c)}) : Value(),
                c.needed(1) ? c.e.call("Select", {x_is_result, zero(c), g}) : Value());
}
void maximum_gradient(GradientContext& c) { extremum_gradient(c, "GreaterEqual"); }
void minimum_gradient(GradientContext& c) { extremum_gradient(c, "LessEqual"); }

void pow_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Widened w(c);
  const DType type = e.dtype(w.x);
  const Value none = e.const_scalar(type, 0), one = e.const_scalar(type, 1);
  Value gx, gy;
  if (c.needed(0)) {  // y x^(y - 1), and 0 where y is 0
    gx = e.times(e.times(w.g, w.y), e.call("Pow", {w.x, e.sub(w.y, one)}));
  }
  if (c.needed(1)) {  // x^y log x, where log x is real (or x complex and not zero)
    const Value defined = e.call(is_complex(type) ? "NotEqual" : "Greater", {w.x, none});
    const Value log = e.call("Log", {e.call("Select", {defined, w.x, one})});
    const Value power = e.widened(e.conj(c.output(0)));
    gy = e.times(e.times(w.g, power), e.call("Select", {defined, log, none}));
  }
  set_broadcast(c, gx, gy);
}

Value not_zero(GradientContext& c, Value x) {
  const DType type = c.e.dtype(x);
  return c.e.cast(c.e.call("NotEqual", {x, c.e.const_scalar(type, 0)}), type);
}

void xdivy_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Widened w(c);
  set_broadcast(
      c, c.needed(0) ? e.times(w.g, e.call("Xdivy", {not_zero(c, w.x), w.y})) : Value(),
      c.needed(1) ? e.over(e.neg(e.times(w.g, e.call("Xdivy", {w.x, w.y}))), w.y) : Value());
}

void xlogy_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Widened w(c);
  set_broadcast(c, c.needed(0) ? e.times(w.g, e.call("Xlogy", {not_zero(c, w.x), w.y})) : Value(),
                c.needed(1) ? e.times(w.g, e.call("Xdivy", {w.x, w.y})) : Value());
}

void atan2_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Widened w(c);  // its y and x
  const Value scaled = e.over(w.g, e.add(e.square(w.x), e.square(w.y)));
  set_broadcast(c, c.needed(0) ? e.mul(w.y, scaled) : Value(),
                c.needed(1) ? e.neg(e.mul(w.x, scaled)) : Value());
}

// A step of one unit in the last place: x1 moves the result one to one, x2 only turns it.
void next_after_gradient(GradientContext& c) {
  const Value g = c.gradient();
  set_broadcast(c, g, c.needed(1) ? c.e.zeros_like(g) : Value());
}

void add_n_shape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    shape = ShapeContext::merge(shape, c.input(i), "the shapes of inputs to add");
  }
  c.set_output(0, shape);
}

void add_n_gradient(GradientContext& c) {
  const Value g = c.gradient();
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.needed(i)) c.set(i, g);
  }
}

void declare_sums(OpRegistry& r) {
  binary(r, "Add", "T: {numbertype, string}", binary_value_shape<sum_value>)
      .commutative()
      .gradient(add_gradient)
      .doc(
          "Sum x + y; of strings the one behind the other.\n\n"
          "Shapes broadcast as in NumPy. Integers wrap around.");
  binary(r, "Sub", kNumbers, binary_value_shape<difference_value>)
      .gradient(sub_gradient)
      .doc(
          "Difference x - y.\n\n"
          "Shapes broadcast as in NumPy. Integers wrap around.");
  binary(r, "SquaredDifference", kReals)
      .commutative()
      .gradient(squared_difference_gradient, {"x", "y"})
      .doc(
          "Square of the difference, (x - y)(x - y).\n\n"
          "Shapes broadcast as in NumPy. Integers wrap around.");
  r.op("AddN", HostAccess::kNone)
      .input("inputs: N * T")
      .output("sum: T")
      .attr("N: int >= 1")
      .attr("T: {numbertype, variant}")
      .shape(add_n_shape)
      .gradient(add_n_gradient)
      .doc(
          "Sum of N tensors of one shape; of lists element by element, where none counts that is "
          "not set.\n\n"
          "Added in the order given; half and bfloat16 are rounded once, at the end.");
}

void declare_products(OpRegistry& r) {
  binary(r, "Mul", kNumbers, binary_value_shape<product_value>)
      .commutative()
      .gradient(mul_gradient, {"x", "y"})
      .doc(
          "Product x * y.\n\n"
          "Shapes broadcast as in NumPy. Integers wrap around.");
  binary(r, "Div", kNumbers, binary_value_shape<truncated_quotient_value>)
      .gradient(div_gradient, {"x", "y"})
      .doc(
          "Quotient x / y; of integers the quotient rounded toward zero.\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
  binary(r, "RealDiv", kFloatsAndComplex)
      .gradient(div_gradient, {"x", "y"})
      .doc(
          "Quotient x / y of floating point or complex numbers.\n\n"
          "Shapes broadcast as in NumPy.");
  binary(r, "DivNoNan", kFloatsAndComplex)
      .gradient(div_no_nan_gradient, {"x", "y"})
      .doc(
          "Quotient x / y, and 0 where y is 0.\n\n"
          "Shapes broadcast as in NumPy.");
  binary(r, "MulNoNan", kFloatsAndComplex)
      .gradient(mul_no_nan_gradient, {"x", "y"})
      .doc(
          "Product x * y, and 0 where y is 0, even if x is infinite or NaN.\n\n"
          "Shapes broadcast as in NumPy.");
  OpDeclaration quotient = r.op("QuotientGrad", HostAccess::kNone);
  quotient.input("dy: T")
      .input("divisor: T")
      .output("dx: T")
      .attr(kFloatsAndComplex)
      .shape(broadcast_binary_shape)
      .elementwise();
  quotient.in_place("dy", "dx")
      .in_place("divisor", "dx")
      .gradient(quotient_grad_gradient, {"dy", "divisor"})
      .doc(
          "Quotient dy / divisor of a gradient, and 0 where dy is 0, even if divisor is 0 or "
          "NaN: how a gradient passes a function with a pole.\n\n"
          "Shapes broadcast as in NumPy. Unlike Xdivy it passes gradients on to dy where dy is 0.");
  binary(r, "TruncateDiv", kReals, binary_value_shape<truncated_quotient_value>)
      .not_differentiable()
      .doc(
          "Quotient rounded toward zero, as in C.\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
  binary(r, "FloorDiv", kReals, binary_value_shape<floor_quotient_value>)
      .not_differentiable()
      .doc(
          "Quotient rounded toward minus infinity: Python's //.\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
  binary(r, "FloorMod", kReals, binary_value_shape<floor_remainder_value>)
      .gradient(floor_mod_gradient, {"x", "y"})
      .doc(
          "Remainder with the sign of y: Python's %.\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
  binary(r, "Mod", kReals, binary_value_shape<truncated_remainder_value>)
      .gradient(mod_gradient, {"x", "y"})
      .doc(
          "Remainder with the sign of x, as in C (fmod).\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
  binary(r, "TruncateMod", kReals, binary_value_shape<truncated_remainder_value>)
      .gradient(mod_gradient, {"x", "y"})
      .doc(
          "Remainder of TruncateDiv, with the sign of x: the same as Mod.\n\n"
          "Shapes broadcast as in NumPy. Errors: InvalidArgument \"Integer division by zero\".");
}

void declare_next_after(OpRegistry& r) {
  OpDeclaration d = r.op("NextAfter", HostAccess::kNone);
  d.input("x1: T")
      .input("x2: T")
      .output("output: T")
      .attr("T: {double, float} = float")
      .shape(broadcast_binary_shape)
      .elementwise();
  d.in_place("x1", "output")
      .in_place("x2", "output")
      .gradient(next_after_gradient)
      .doc(
          "The number next to x1 in the direction of x2, as C's nextafter: x2 where they are "
          "equal, "
          "NaN where either is.\n\nShapes broadcast as in NumPy. The gradient goes to x1.");
}

void declare_others(OpRegistry& r) {
  binary(r, "Maximum", kReals, binary_value_shape<larger_value>)
      .commutative()
      .gradient(maximum_gradient, {"x", "y"})
      .doc(
          "The larger of x and y; NaN where either is NaN.\n\n"
          "Shapes broadcast as in NumPy. Where x equals y the gradient goes to x.");
  binary(r, "Minimum", kReals, binary_value_shape<smaller_value>)
      .commutative()
      .gradient(minimum_gradient, {"x", "y"})
      .doc(
          "The smaller of x and y; NaN where either is NaN.\n\n"
          "Shapes broadcast as in NumPy. Where x equals y the gradient goes to x.");
  binary(r, "Pow", kNumbers)
      .gradient(pow_gradient, {"x", "y", "z"})
      .doc(
          "Power x ** y.\n\n"
          "Shapes broadcast as in NumPy. Integers wrap around. Errors: InvalidArgument \"Integers "
          "to negative integer powers are "
          "not allowed\".");
  binary(r, "Xdivy", kFloatsAndComplex)
      .gradient(xdivy_gradient, {"x", "y"})
      .doc(
          "Quotient x / y, and 0 where x is 0, whatever y is.\n\n"
          "Shapes broadcast as in NumPy.");
  binary(r, "Xlogy", kFloatsAndComplex)
      .gradient(xlogy_gradient, {"x", "y"})
      .doc(
          "x * log(y), and 0 where x is 0, whatever y is.\n\n"
          "Shapes broadcast as in NumPy.");
  declare_next_after(r);
  OpDeclaration atan2 = r.op("Atan2", HostAccess::kNone);
  atan2.input("y: T")
      .input("x: T")
      .output("z: T")
      .attr(kFloats)
      .shape(broadcast_binary_shape)
      .elementwise();
  atan2.in_place("y", "z")
      .in_place("x", "z")
      .gradient(atan2_gradient, {"y", "x"})
      .doc(
          "Angle of the point (x, y) in radians, in [-pi, pi].\n\n"
          "Shapes broadcast as in NumPy.");
}

}  // namespace

void register_arithmetic_ops(OpRegistry& r) {
  declare_sums(r);
  declare_products(r);
  declare_others(r);
  r.finish("arithmetic");
}

}  // namespace treenail
