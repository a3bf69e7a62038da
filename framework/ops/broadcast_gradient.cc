// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic that gradients of broadcasting and of reductions need where shapes are not known
// while the graph is built. Kernels: kernels/host/arrays/broadcast_gradient.cc.
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/reduction_shape.h"

namespace treenail {
namespace {

void broadcast_gradient_args_shape(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 1);
  c.set_output(0, PartialShape({kUnknown}));
  c.set_output(1, PartialShape({kUnknown}));
}

void reduced_shape_shape(ShapeContext& c) {
  const PartialShape shape = c.with_rank(0, 1);
  c.set_output(0, shape);
  const PartialValue* dims = c.value(0);
  const PartialValue* axes = c.value(1);
  if (dims == nullptr || axes == nullptr || !axes->fully_known()) return;
  PartialValue kept = *dims;
  const std::vector<bool> reduced = reduced_axes(*axes, static_cast<int>(kept.elements.size()));
  for (size_t i = 0; i < kept.elements.size(); ++i) {
    if (reduced[i]) kept.elements[i] = 1;
  }
  c.set_value(0, kept);
}

void reduction_order_shape(ShapeContext& c) {
  const PartialShape shape = c.with_rank(0, 1);
  c.set_output(0, shape);
  c.set_output(1, PartialShape({kUnknown}));
}

}  // namespace

void register_broadcast_gradient_ops(OpRegistry& r) {
  r.op("BroadcastGradientArgs", HostAccess::kNone)
      .input("s0: T")
      .input("s1: T")
      .output("r0: T")
      .output("r1: T")
      .attr("T: {int32, int64} = int32")
      .shape(broadcast_gradient_args_shape)
      .data_dependent_shape()
      .computes_sizes()
      .not_differentiable()
      .doc(
          "Axes to sum a gradient over, for two operands of shapes s0 and s1 that were broadcast "
          "together.\n\n"
          "r0 and r1: the axes of the broadcast shape along which operand 0 and 1 were stretched. "
          "Errors: InvalidArgument "
          "for shapes that do not broadcast.");
  r.op("ReducedShape", HostAccess::kNone)
      .input("shape: T")
      .input("axes: Tidx")
      .output("kept: T")
      .attr("T: {int32, int64} = int32")
      .attr("Tidx: {int32, int64} = int32")
      .shape(reduced_shape_shape)
      .computes_sizes()
      .not_differentiable()
      .doc(
          "The shape of a reduction that keeps its axes: shape with 1 at each of axes.\n\n"
          "axes: a scalar or vector in [-rank, rank). Errors: InvalidArgument for an axis out of "
          "range or named twice.");
  r.op("ReductionOrder", HostAccess::kNone)
      .input("shape: T")
      .input("axes: Tidx")
      .output("order: T")
      .output("flat: T")
      .attr("T: {int32, int64} = int32")
      .attr("Tidx: {int32, int64} = int32")
      .shape(reduction_order_shape)
      .data_dependent_shape()
      .computes_sizes()
      .not_differentiable()
      .doc(
          "How to bring the axes of a reduction to the front and make one of them.\n\n"
          "order: the axes of a tensor of this shape, those in axes first. flat: the shape after "
          "transposing so, the reduced axes taken together as the first one. axes: a scalar or "
          "vector in [-rank, rank). Errors: InvalidArgument for an axis out of range or named "
          "twice.");
  r.finish("broadcast_gradient");
}

}  // namespace treenail
