// SPDX-License-Identifier: Apache-2.0
// Accumulators of gradients: state behind handles, as queues are. TensorFlow 1's resource form of
// them, under the names that it gave them first.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void handle_shape(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_handle(0, HandleInfo{c.op().get_type("dtype"), c.op().get<PartialShape>("shape")});
}

// Of the gradients, where the handle tells.
PartialShape gradient_shape(const ShapeContext& c) {
  c.with_rank(0, 0);
  const HandleInfo* info = c.handle(0);
  if (info == nullptr) return PartialShape();
  const DType dtype = c.op().get_type("dtype");
  if (info->dtype != DType::kInvalid && info->dtype != dtype) {
    throw invalid_argument("the accumulator has dtype ", info->dtype, ", the operation works on ",
                           dtype);
  }
  return info->shape;
}

void num_accumulated_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
}

void set_global_step_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.with_rank(1, 0);
}

// A stale gradient is dropped whatever its shape, so that the run alone holds it to the
// accumulator's.
void apply_shape(ShapeContext& c) {
  gradient_shape(c);
  c.with_rank(1, 0);
}

void take_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  c.set_output(0, gradient_shape(c));
}

void sparse_apply_shape(ShapeContext& c) {
  gradient_shape(c);
  c.with_rank(1, 0);
  const PartialShape indices = c.with_rank(2, 1);
  const PartialShape values = c.with_rank_at_least(3, 1);
  c.with_rank(4, 1);
  if (!values.rank_known()) return;
  ShapeContext::merge_dim(indices.dim(0), values.dim(0),
                          "the number of gradient_indices and of slices in gradient_values");
}

void sparse_take_shape(ShapeContext& c) {
  gradient_shape(c);
  c.with_rank(1, 0);
  c.set_output(0, PartialShape{kUnknown});
  c.set_output(2, PartialShape{kUnknown});
}

void register_common(OpRegistry& r) {
  r.op("AccumulatorNumAccumulated", HostAccess::kNone)
      .input("handle: resource")
      .output("num_accumulated: int32")
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(num_accumulated_shape)
      .not_differentiable()
      .doc(
          "How many gradients an accumulator, dense or sparse, holds: a scalar. Dropped ones do "
          "not count.");
  r.op("AccumulatorSetGlobalStep", HostAccess::kNone)
      .input("handle: resource")
      .input("new_global_step: int64")
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(set_global_step_shape)
      .not_differentiable()
      .doc(
          "Sets the step of an accumulator, dense or sparse: gradients of earlier ones are dropped "
          "from now on, and those that are there and have a place where it is another step.");
}

// Of a handle, less its doc.
OpDeclaration accumulator(OpRegistry& r, const char* name) {
  return r.op(name, HostAccess::kNone)
      .output("handle: resource")
      .attr("dtype: numbertype")
      .attr("shape: shape")
      .attr("container: string = ''")
      .attr("shared_name: string = ''")
      .attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
      .stateful()
      .not_differentiable()
      .shape(handle_shape);
}

void register_dense(OpRegistry& r) {
  accumulator(r, "ConditionalAccumulator")
      .doc(
          "The handle of the accumulator of gradients called `shared_name`, or as this operation "
          "when it is empty.\n\n"
          "It is made at first use, empty, at step 0. shape: of the gradients, unknown extents "
          "allowed. reduction_type: what AccumulatorTakeGradient gives of them.\n"
          "container: accumulators of the same name in different containers are different.\n"
          "In immediate execution an empty name gives a new accumulator each time, which lives as "
          "long as its handle.\n"
          "Errors: InvalidArgument when the name belongs to an accumulator of another dtype, shape "
          "or reduction.");
  r.op("AccumulatorApplyGradient", HostAccess::kNone)
      .input("handle: resource")
      .input("local_step: int64")
      .input("gradient: dtype")
      .attr("dtype: numbertype")
      .attr("place: int = -1")
      .stateful()
      .access("handle", Access::kOpaque)
      .stored("gradient")
      .shape(apply_shape)
      .not_differentiable()
      .doc(
          "Adds a gradient to an accumulator, unless local_step, a scalar, is below the "
          "accumulator's step: then the gradient is dropped.\n\n"
          "place: where it stands in the sum, which goes in ascending order of places, whatever "
          "the order of arrival; until gradients are taken each place has one, and a second is "
          "dropped, as is one of a later step than the accumulator's. -1: before all of these, as "
          "it comes.\n"
          "Errors: InvalidArgument for another dtype or shape than the accumulator's.");
  r.op("AccumulatorTakeGradient", HostAccess::kNone)
      .input("handle: resource")
      .input("num_required: int32")
      .output("average: dtype")
      .attr("dtype: numbertype")
      .asynchronous()
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(take_shape)
      .not_differentiable()
      .doc(
          "The mean (or sum) of the gradients in an accumulator, once there are at least "
          "num_required, a scalar.\n\n"
          "The accumulator is empty then, and its step one higher. Who waits longest is served "
          "first.\n"
          "Errors: InvalidArgument unless num_required is positive.");
}

void register_sparse(OpRegistry& r) {
  accumulator(r, "SparseConditionalAccumulator")
      .doc(
          "As ConditionalAccumulator, of gradients that are slices: some indices of the first axis "
          "and what stands there.\n\n"
          "The mean of an index is over the gradients that have it.");
  r.op("SparseAccumulatorApplyGradient", HostAccess::kNone)
      .input("handle: resource")
      .input("local_step: int64")
      .input("gradient_indices: int64")
      .input("gradient_values: dtype")
      .input("gradient_shape: int64")
      .attr("dtype: numbertype")
      .attr("has_known_shape: bool")
      .attr("place: int = -1")
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(sparse_apply_shape)
      .not_differentiable()
      .doc(
          "Adds a sparse gradient to an accumulator, unless local_step, a scalar, is below the "
          "accumulator's step: then the gradient is dropped.\n\n"
          "gradient_indices: [n], in any order; slices of one index are added. gradient_values: "
          "[n, ...]. gradient_shape: the whole gradient's, looked at where has_known_shape. "
          "place: as of AccumulatorApplyGradient.\n"
          "Errors: InvalidArgument for another dtype or shape than the accumulator's, and for "
          "indices outside of it.");
  r.op("SparseAccumulatorTakeGradient", HostAccess::kNone)
      .input("handle: resource")
      .input("num_required: int32")
      .output("indices: int64")
      .output("values: dtype")
      .output("shape: int64")
      .attr("dtype: numbertype")
      .asynchronous()
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(sparse_take_shape)
      .not_differentiable()
      .doc(
          "As AccumulatorTakeGradient, of a sparse accumulator: indices ascend, none twice, "
          "values[i] stands at indices[i].\n\n"
          "shape: the whole gradient's, with -1 in front where the accumulator's shape leaves that "
          "open.");
}

}  // namespace

void register_conditional_accumulator_ops(OpRegistry& r) {
  register_common(r);
  register_dense(r);
  register_sparse(r);
  r.finish("conditional_accumulator");
}

}  // namespace treenail
