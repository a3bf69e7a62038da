// SPDX-License-Identifier: Apache-2.0
// Running sums, products and logarithms of sums along one axis, and the recurrence of first order
// by which products are differentiated without a division. Kernels:
// kernels/host/reductions/scan.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void scan_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  const PartialValue* axis = c.value(1);
  if (input.rank_known() && axis != nullptr && axis->fully_known()) {
    ShapeContext::checked_axis(*axis->elements[0], input.rank());
  }
  c.set_output(0, input);
}

NamedAttrs backwards(GradientContext& c) {
  return {{"exclusive", c.op().get_bool("exclusive")}, {"reverse", !c.op().get_bool("reverse")}};
}

// Each element is part of all later sums.
void cumsum_gradient(GradientContext& c) {
  c.set(0, c.e.call("Cumsum", {c.gradient(), c.input(1)}, backwards(c)));
}

// out and before of LinearRecurrence, against the direction of the op at hand.
std::vector<Value> recur_backwards(GradientContext& c, Value x, Value decay, Value axis) {
  const std::vector<Value> inputs = {x, decay, axis};
  return c.e.emit("LinearRecurrence", inputs, {{"reverse", !c.op().get_bool("reverse")}});
}

// Sums of g[i] times the product of what stands strictly between k and i, over i from k on: a
// recurrence from the end. Nothing is divided, so that zeros do no harm.
Value later_sums(GradientContext& c, Value g, Value decay, Value axis) {
  return c.e.add(g, recur_backwards(c, c.e.mul(decay, g), decay, axis)[1]);
}

// x[k] meets the product of all before it, and of each later result what stands between.
void cumprod_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const bool exclusive = c.op().get_bool("exclusive");
  const Value axis = c.input(1), x = e.conj(c.input(0)), g = c.gradient();
  const Value later = exclusive ? recur_backwards(c, g, x, axis)[1] : later_sums(c, g, x, axis);
  const NamedAttrs all_before = {{"exclusive", true}, {"reverse", c.op().get_bool("reverse")}};
  c.set(0, e.mul(e.call("Cumprod", {x, axis}, all_before), later));
}

// out = log(e^x[0] + … + e^x[i]): x[k] gets all later g[i] times e^(x[k] - out[i]). The factors
// e^(out[i - 1] - out[i]) between neighbours are at most 1, so a recurrence from the end by them
// neither overflows nor leaves g, in which it is linear.
void cumulative_logsumexp_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const bool exclusive = c.op().get_bool("exclusive"), reverse = c.op().get_bool("reverse");
  const Value x = c.input(0), axis = c.input(1), g = c.gradient();
  const auto sums = [&](bool before) {
    return e.call("CumulativeLogsumexp", {x, axis}, {{"exclusive", before}, {"reverse", reverse}});
  };
  const Value before = exclusive ? c.output(0) : sums(true);
  const Value with = exclusive ? sums(false) : c.output(0);
  const Value decay = e.call("Exp", {e.sub(before, with)});
  const Value later =
      exclusive ? recur_backwards(c, g, decay, axis)[1] : later_sums(c, g, decay, axis);
  c.set(0, e.times(later, e.call("Exp", {e.sub(x, with)})));
}

void recurrence_shape(ShapeContext& c) {
  const PartialShape both =
      ShapeContext::merge(c.with_rank_at_least(0, 1), c.input(1), "shapes of x and decay");
  c.with_rank(2, 0);
  const PartialValue* axis = c.value(2);
  if (both.rank_known() && axis != nullptr && axis->fully_known()) {
    ShapeContext::checked_axis(*axis->elements[0], both.rank());
  }
  c.set_output(0, both);
  c.set_output(1, both);
}

// What arrives at out[i] goes on to all that it made: a recurrence the other way. The gradient of
// `before` is that of `out` one element earlier.
void recurrence_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value decay = e.conj(c.input(1)), axis = c.input(2);
  Value g = c.gradient(0);
  if (c.has_gradient(1)) {
    const Value shifted = c.gradient(1);
    g = e.add(g, recur_backwards(c, shifted, e.zeros_like(shifted), axis)[1]);
  }
  const Value gx = later_sums(c, g, decay, axis);
  c.set(0, gx);
  if (c.needed(1)) c.set(1, e.mul(gx, e.conj(c.output(1))));
}

OpDeclaration scan(OpRegistry& r, const char* name, const char* types = "T: numbertype") {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .input("axis: Tidx")
      .output("out: T")
      .attr("exclusive: bool = false")
      .attr("reverse: bool = false");
  d.attr(types).attr("Tidx: {int32, int64} = int32").host("axis").shape(scan_shape);
  return d;
}

}  // namespace

void register_scan_ops(OpRegistry& r) {
  scan(r, "Cumsum")
      .gradient(cumsum_gradient, {"axis"})
      .doc(
          "Running sum along axis: out[i] = x[0] + … + x[i].\n\n"
          "exclusive: without x[i] itself, so the first is 0. reverse: from the end. axis: a "
          "scalar in [-rank, rank). Errors: "
          "InvalidArgument for an axis out of range.");
  scan(r, "Cumprod")
      .gradient(cumprod_gradient, {"x", "axis"})
      .doc(
          "Running product along axis: out[i] = x[0] * … * x[i].\n\n"
          "exclusive: without x[i] itself, so the first is 1. reverse: from the end. axis: a "
          "scalar in [-rank, rank). The gradient holds where x is 0, too. Errors: InvalidArgument "
          "for an axis out of range.");
  scan(r, "CumulativeLogsumexp", "T: {half, bfloat16, float, double}")
      .gradient(cumulative_logsumexp_gradient, {"x", "axis", "out"})
      .doc(
          "Running log-sum-exp along axis: out[i] = log(e ** x[0] + … + e ** x[i]), without "
          "overflow.\n\n"
          "exclusive: without x[i] itself, so the first is the lowest finite number of the dtype, "
          "as in TensorFlow. reverse: from the end. axis: a scalar in [-rank, rank). Errors: "
          "InvalidArgument for an axis out of range.");
  r.op("LinearRecurrence", HostAccess::kNone)
      .input("x: T")
      .input("decay: T")
      .input("axis: Tidx")
      .output("out: T")
      .output("before: T")
      .attr("reverse: bool = false")
      .attr("T: {half, bfloat16, float, double, complex64, complex128}")
      .attr("Tidx: {int32, int64} = int32")
      .host("axis")
      .shape(recurrence_shape)
      .gradient(recurrence_gradient, {"decay", "axis", "before"})
      .doc(
          "Recurrence of first order along axis: out[i] = x[i] + decay[i] * out[i - 1], the first "
          "x "
          "alone, and before[i] = out[i - 1], 0 for the first.\n\n"
          "x and decay have one shape; the first decay is not used. reverse: from the end. axis: a "
          "scalar in [-rank, rank). Errors: InvalidArgument for an axis out of range, or shapes "
          "that differ.");
  r.finish("scan");
}

}  // namespace treenail
