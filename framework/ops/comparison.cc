// SPDX-License-Identifier: Apache-2.0
// Ops whose result is a truth value: comparisons, logic, and questions about floating point
// numbers. Choosing by such a value: selection.cc. Loops: kernels/cpu/elementwise/comparison.cc,
// kernels/host/.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void compare(OpRegistry& r, const char* name, const char* types, bool commutative,
             const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .input("y: T")
      .output("z: bool")
      .attr(types)
      .shape(broadcast_binary_shape)
      .elementwise();
  if (commutative) d.commutative();
  d.not_differentiable().doc(doc);
}

void logical(OpRegistry& r, const char* name, const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: bool").input("y: bool").output("z: bool").shape(broadcast_binary_shape).elementwise();
  d.commutative().in_place("x", "z").in_place("y", "z").not_differentiable().doc(doc);
}

void question(OpRegistry& r, const char* name, const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .output("y: bool")
      .attr("T: {half, bfloat16, float, double}")
      .shape(unchanged_shape);
  d.elementwise().not_differentiable().doc(doc);
}

}  // namespace

void register_comparison_ops(OpRegistry& r) {
  constexpr char kAny[] = "T: {numbertype, bool, string}";
  constexpr char kReals[] = "T: realnumbertype";
  compare(r, "Equal", kAny, true,
          "Whether x equals y.\n\nShapes broadcast as in NumPy. NaN equals nothing.");
  compare(
      r, "NotEqual", kAny, true,
      "Whether x differs from y.\n\nShapes broadcast as in NumPy. NaN differs from everything.");
  compare(r, "Less", kReals, false,
          "Whether x < y.\n\nShapes broadcast as in NumPy. False for NaN.");
  compare(r, "LessEqual", kReals, false,
          "Whether x <= y.\n\nShapes broadcast as in NumPy. False for NaN.");
  compare(r, "Greater", kReals, false,
          "Whether x > y.\n\nShapes broadcast as in NumPy. False for NaN.");
  compare(r, "GreaterEqual", kReals, false,
          "Whether x >= y.\n\nShapes broadcast as in NumPy. False for NaN.");
  r.op("ApproximateEqual", HostAccess::kNone)
      .input("x: T")
      .input("y: T")
      .output("z: bool")
      .attr(kReals)
      .attr("tolerance: float = 1e-5")
      .shape(broadcast_binary_shape)
      .elementwise()
      .commutative()
      .not_differentiable()
      .doc(
          "Whether |x - y| < tolerance.\n\nShapes broadcast as in NumPy. The difference of "
          "integers is taken in their type.");
  logical(r, "LogicalAnd", "Whether both x and y are true.\n\nShapes broadcast as in NumPy.");
  logical(r, "LogicalOr", "Whether x or y is true.\n\nShapes broadcast as in NumPy.");
  r.op("LogicalNot", HostAccess::kNone)
      .input("x: bool")
      .output("y: bool")
      .shape(unchanged_shape)
      .elementwise()
      .in_place("x", "y")
      .not_differentiable()
      .doc("Whether x is false.");
  question(r, "IsNan", "Whether x is not a number.");
  question(r, "IsInf", "Whether x is infinite.");
  question(r, "IsFinite", "Whether x is neither infinite nor NaN.");
  r.finish("comparison");
}

}  // namespace treenail
