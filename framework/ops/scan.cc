// SPDX-License-Identifier: Apache-2.0
// Running sums and products along one axis. Kernels: kernels/host/scan.cc.
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

// Each element divides all later products: sum of g y over them, over x.
void cumprod_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value weighted = e.mul(c.gradient(), e.conj(c.output(0)));
  c.set(0, e.div(e.call("Cumsum", {weighted, c.input(1)}, backwards(c)), e.conj(c.input(0))));
}

OpDeclaration scan(OpRegistry& r, const char* name) {
  OpDeclaration d = r.op(name);
  d.input("x: T")
      .input("axis: Tidx")
      .output("out: T")
      .attr("exclusive: bool = false")
      .attr("reverse: bool = false");
  d.attr("T: numbertype").attr("Tidx: {int32, int64} = int32").host("axis").shape(scan_shape);
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
      .gradient(cumprod_gradient, {"x", "axis", "out"})
      .doc(
          "Running product along axis: out[i] = x[0] * … * x[i].\n\n"
          "exclusive: without x[i] itself, so the first is 1. reverse: from the end. axis: a "
          "scalar in [-rank, rank). The "
          "gradient is undefined (NaN) where x is 0. Errors: InvalidArgument for an axis out of "
          "range.");
  r.finish("scan");
}

}  // namespace treenail
