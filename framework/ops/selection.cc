// SPDX-License-Identifier: Apache-2.0
// Choosing elements: by a condition, or by bounds. Conditions come from comparison.cc.
// Loops: kernels/cpu/elementwise/selection.cc; strings: kernels/host/.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void select_shape(ShapeContext& c) {
  c.set_output(
      0, ShapeContext::broadcast(ShapeContext::broadcast(c.input(0), c.input(1)), c.input(2)));
}

void select_gradient(GradientContext& c) {
  const Value g = c.gradient(), zero = c.e.const_scalar(c.input_dtype(1), 0),
              condition = c.input(0);
  if (c.needed(1)) c.set(1, c.sum_to_input(c.e.call("Select", {condition, g, zero}), 1));
  if (c.needed(2)) c.set(2, c.sum_to_input(c.e.call("Select", {condition, zero, g}), 2));
}

void clip_shape(ShapeContext& c) {
  const PartialShape wide =
      ShapeContext::broadcast(ShapeContext::broadcast(c.input(0), c.input(1)), c.input(2));
  if (!wide.compatible(c.input(0))) {
    throw invalid_argument("bounds of shapes ", c.input(1), " and ", c.input(2),
                           " do not broadcast to ", c.input(0), ", the shape of t");
  }
  c.set_output(0, c.input(0));
}

// Below the lower bound the lower bound is the result, above the upper one the upper one; elsewhere
// t.
void clip_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient(), t = c.input(0), zero = e.const_scalar(c.input_dtype(0), 0);
  const Value below = e.call("Less", {t, c.input(1)}), above = e.call("Greater", {t, c.input(2)});
  if (c.needed(0)) {
    c.set(0, e.call("Select", {e.call("LogicalOr", {below, above}), zero, g}));
  }
  if (c.needed(1)) {
    const Value low = e.call("LogicalAnd", {below, e.call("LogicalNot", {above})});
    c.set(1, c.sum_to_input(e.call("Select", {low, g, zero}), 1));
  }
  if (c.needed(2)) c.set(2, c.sum_to_input(e.call("Select", {above, g, zero}), 2));
}

}  // namespace

void register_selection_ops(OpRegistry& r) {
  r.op("Select", HostAccess::kNone)
      .input("condition: bool")
      .input("x: T")
      .input("y: T")
      .output("output: T")
      .attr("T: type")
      .shape(select_shape)
      .elementwise()
      .in_place("x", "output")
      .in_place("y", "output")
      .gradient(select_gradient, {"condition"})
      .doc(
          "Elements of x where condition is true, of y elsewhere.\n\n"
          "The three shapes broadcast as in NumPy (numpy.where).");
  r.op("ClipByValue", HostAccess::kNone)
      .input("t: T")
      .input("clip_value_min: T")
      .input("clip_value_max: T")
      .output("output: T")
      .attr("T: realnumbertype")
      .shape(clip_shape)
      .elementwise()
      .in_place("t", "output")
      .gradient(clip_gradient, {"t", "clip_value_min", "clip_value_max"})
      .doc(
          "t limited to [clip_value_min, clip_value_max]; the upper bound where the bounds "
          "cross.\n\n"
          "The bounds broadcast to the shape of t. NaN stays NaN. Outside the bounds the gradient "
          "goes to the bound.");
  r.finish("selection");
}

}  // namespace treenail
