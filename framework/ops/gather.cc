// SPDX-License-Identifier: Apache-2.0
// Elements chosen by indices, and the same places written: Gather and GatherNd; ScatterNd and the
// TensorScatter ops; ResourceScatterNd ops, which write to a variable. Rows of variables:
// variable.cc.
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/variable_rules.h"

namespace treenail {
namespace {

// --- Gather -----------------------------------------------------------------------------------

int batch_dims_of(const OpInstance& op, int indices_rank) {
  const int64_t given = op.get_int("batch_dims");
  const int64_t dims = given < 0 && indices_rank >= 0 ? given + indices_rank : given;
  if (indices_rank >= 0 && (dims < 0 || dims > indices_rank)) {
    throw invalid_argument("Expected batch_dims in the range [", -indices_rank, ", ", indices_rank,
                           "], but got ", given);
  }
  return static_cast<int>(dims);
}

void gather_value(ShapeContext& c, const PartialShape& indices, const PartialShape& params) {
  const PartialValue* value = c.value(0);
  const std::optional<std::vector<int64_t>> at = known_vector(c, 1);
  if (value == nullptr || value->scalar || !at || params.rank() != 1 || indices.rank() > 1) return;
  PartialValue chosen;
  chosen.scalar = indices.rank() == 0;
  for (int64_t i : *at) {
    if (i < 0 || i >= static_cast<int64_t>(value->elements.size()))
      return;  // the kernel will say so
    chosen.elements.push_back(value->elements[static_cast<size_t>(i)]);
  }
  c.set_value(0, std::move(chosen));
}

void gather_shape(ShapeContext& c) {
  const PartialShape params = c.with_rank_at_least(0, 1);
  const PartialShape& indices = c.input(1);
  c.with_rank(2, 0);
  if (!indices.rank_known()) return;
  const int batch_dims = batch_dims_of(c.op(), indices.rank());
  if (!params.rank_known()) return;
  const std::optional<int> axis = known_axis(c, 2, params.rank());
  const int rank = params.rank() - 1 + indices.rank() - batch_dims;
  if (rank > kMaxRank)
    throw invalid_argument("the result would have rank ", rank, ", at most ", kMaxRank,
                           " is supported");
  if (batch_dims >= params.rank()) {
    throw invalid_argument("batch_dims (", batch_dims, ") must be less than rank(params) (",
                           params.rank(), ")");
  }
  if (!axis) {
    c.set_output(0, PartialShape::unknown_with_rank(rank));
    return;
  }
  if (batch_dims > *axis)
    throw invalid_argument("batch_dims (", batch_dims, ") must be less than or equal to axis (",
                           *axis, ")");
  PartialShape batch = params.sub(0, batch_dims);
  for (int i = 0; i < batch_dims; ++i) {
    batch = batch.with_dim(
        i, ShapeContext::merge_dim(params[i], indices[i],
                                   concat("params.shape[", i, "] and indices.shape[", i, "]")));
  }
  c.set_output(0, batch.concatenated(params.sub(batch_dims, *axis))
                      .concatenated(indices.sub(batch_dims, indices.rank()))
                      .concatenated(params.sub(*axis + 1, params.rank())));
  gather_value(c, indices, params);
}

// The general case, params = [batch, outer, extent, inner] and indices = [batch, count]: gradients
// are brought into rows of [outer * inner] numbered batch * extent + index, summed by number, and
// brought back. `axis` may be negative: then the rank of params need not be known.
Value gather_gradient_by_segments(GradientContext& c, int axis, int batch_dims) {
  Emitter& e = c.e;
  const Value indices = c.input(1);
  const bool last = axis == -1;
  const AxisGroup inner_axes = last ? AxisGroup{0, 0} : AxisGroup{axis + 1, kToEnd};
  const AxisGroup params_groups[] = {
      {0, batch_dims}, {batch_dims, axis}, {axis, last ? kToEnd : axis + 1}, inner_axes};
  const AxisGroup index_groups[] = {{0, batch_dims}, {batch_dims, kToEnd}};
  const Value sizes = grouped_shape(e, c.input_shape(0), c.input_shape_value(0),
                                    params_groups);  // [batch, outer, extent, inner]
  const Value counts =
      grouped_shape(e, c.input_shape(1), c.input_shape_value(1), index_groups);  // [batch, count]
  const Value batch = element_of(e, sizes, 0);
  const Value outer = element_of(e, sizes, 1);
  const Value extent = element_of(e, sizes, 2);
  const Value inner = element_of(e, sizes, 3);
  const Value count = element_of(e, counts, 1);

  const std::vector<Value> split = {batch, outer, count, inner};
  const Value gradient = e.reshape(c.gradient(), e.call("Pack", split));
  const Value rows = e.call("Transpose", {gradient, int_vector(e, {0, 2, 1, 3})});
  const std::vector<Value> row_extents = {e.mul(batch, count), outer, inner};
  const DType wide = DType::kInt64;  // numbers of rows may not fit the dtype of the indices
  const Value range = e.call("Range", {int_scalar(e, 0, wide), batch, int_scalar(e, 1, wide)});
  const Value first = e.call("ExpandDims", {e.mul(range, extent), int_scalar(e, 1)});
  const Value numbers = e.add(e.cast(e.reshape(indices, counts), wide), first);
  const Value summed = e.call("UnsortedSegmentSum", {e.reshape(rows, e.call("Pack", row_extents)),
                                                     flattened(e, numbers), e.mul(batch, extent)});
  const std::vector<Value> back = {batch, extent, outer, inner};
  const Value placed =
      e.call("Transpose", {e.reshape(summed, e.call("Pack", back)), int_vector(e, {0, 2, 1, 3})});
  return e.reshape(placed, c.input_shape_value(0));
}

void gather_gradient(GradientContext& c) {
  if (!c.needed(0)) return;
  Emitter& e = c.e;
  const Tensor* axis_value = c.input_constant(2);
  const PartialShape params = c.input_shape(0);
  const PartialShape indices = c.input_shape(1);
  if (axis_value == nullptr) throw unimplemented("the gradient of Gather needs a constant axis");
  const int64_t given = scalar_int64(*axis_value);
  const int axis =
      static_cast<int>(given < 0 && params.rank_known() ? given + params.rank() : given);
  if (c.op().get_int("batch_dims") < 0 && !indices.rank_known()) {
    throw unimplemented(
        "the gradient of Gather needs the rank of indices when batch_dims is negative");
  }
  const int batch_dims = batch_dims_of(c.op(), indices.rank());
  if (axis != 0 || batch_dims != 0) {
    c.set(0, gather_gradient_by_segments(c, axis, batch_dims));
    return;
  }
  const DType type = index_dtype(DType::kInt32, params);  // int32 as in TensorFlow
  const Value dense_shape = c.input_shape_value(0, type);
  const Value row_shape = e.call("Slice", {dense_shape, int_vector(e, {1}), int_vector(e, {-1})});
  const Value count = e.call("Size", {c.input(1)}, {{"out_type", type}});
  const Value values_shape =
      e.call("Concat", {e.reshape(count, int_vector(e, {1})), row_shape, int_scalar(e, 0)});
  c.set(0, Gradient::slices(e.reshape(c.gradient(), values_shape), flattened(e, c.input(1)),
                            dense_shape));
}

// --- GatherNd ---------------------------------------------------------------------------------

// The depth of multi-dimensional indices: their last extent, at most the rank of what they index.
int64_t index_depth(const PartialShape& indices, const PartialShape& params,
                    std::string_view what) {
  if (!indices.rank_known()) return kUnknown;
  if (indices.rank() < 1) throw invalid_argument("indices must be at least a vector, got a scalar");
  const int64_t depth = indices[indices.rank() - 1];
  if (depth != kUnknown && params.rank_known() && depth > params.rank()) {
    throw invalid_argument("index innermost dimension length must be <= ", what,
                           " rank; saw: ", depth, " vs. ", params.rank());
  }
  return depth;
}

// The shape of what indices choose from params: indices.shape[:-1] + params.shape[depth:].
PartialShape chosen_shape(const PartialShape& indices, const PartialShape& params,
                          std::string_view what) {
  const int64_t depth = index_depth(indices, params, what);
  if (depth == kUnknown || !params.rank_known()) return PartialShape();
  return indices.sub(0, indices.rank() - 1)
      .concatenated(params.sub(static_cast<int>(depth), params.rank()));
}

void gather_nd_shape(ShapeContext& c) {
  c.set_output(0, chosen_shape(c.input(1), c.input(0), "params"));
}

void gather_nd_gradient(GradientContext& c) {
  if (!c.needed(0)) return;
  Emitter& e = c.e;
  const PartialShape indices = c.input_shape(1);
  const DType type = index_dtype(c.input_dtype(1), c.input_shape(0));
  const Value shape = c.input_shape_value(0, type);
  const Value places = e.cast(c.input(1), type);
  if (indices.rank() == 2 && indices[1] == 1) {
    c.set(0, Gradient::slices(c.gradient(), flattened(e, places), shape));
    return;
  }
  c.set(0, e.call("ScatterNd", {places, c.gradient(), shape}));
}

// --- Scatter ----------------------------------------------------------------------------------

void check_updates(const PartialShape& indices, const PartialShape& updates,
                   const PartialShape& target) {
  const PartialShape wanted = chosen_shape(indices, target, "shape");
  if (!wanted.compatible(updates)) {
    throw invalid_argument(
        "Must have updates.shape = indices.shape[:-1] + shape[indices.shape[-1]:] = ", wanted,
        ", got updates.shape ", updates, ", indices.shape ", indices, ", shape ", target);
  }
}

void scatter_nd_shape(ShapeContext& c) {
  const PartialShape target = extents_from_value(c, 2);
  check_updates(c.input(0), c.input(1), target);
  c.set_output(0, target);
}

void scatter_nd_gradient(GradientContext& c) {
  c.set(1, c.e.call("GatherNd", {c.gradient(), c.input(0)}));
}

void tensor_scatter_shape(ShapeContext& c) {
  check_updates(c.input(1), c.input(2), c.input(0));
  c.set_output(0, c.input(0));
}

void resource_scatter_nd_shape(ShapeContext& c) {
  check_updates(c.input(1), c.input(2), variable_shape(c, c.op().get_type("dtype")));
}

void tensor_update_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value gradient = c.gradient();
  if (c.needed(2)) c.set(2, e.call("GatherNd", {gradient, c.input(1)}));
  if (!c.needed(0)) return;
  const Value zeros = e.call("Fill", {c.input_shape_value(2), e.const_scalar(c.input_dtype(2), 0)});
  c.set(0, e.call("TensorScatterUpdate", {gradient, c.input(1), zeros}));
}

void tensor_add_gradient(GradientContext& c) {
  const Value gradient = c.gradient();
  c.set(0, gradient);
  if (!c.needed(2)) return;
  const Value gathered = c.e.call("GatherNd", {gradient, c.input(1)});
  c.set(2, c.op().name() == "TensorScatterSub" ? c.e.neg(gathered) : gathered);
}

void register_gathers(OpRegistry& r) {
  r.op("Gather", HostAccess::kNone)
      .input("params: Tparams")
      .input("indices: Tindices")
      .input("axis: Taxis")
      .output("output: Tparams")
      .attr("batch_dims: int = 0")
      .attr("Tparams: type")
      .attr("Tindices: {int32, int64}")
      .attr("Taxis: {int32, int64} = int32")
      .host("axis")
      .shape(gather_shape)
      .gradient(gather_gradient, {"indices"})
      .doc(
          "Slices of `params` along `axis` at `indices`: output[..., i, ...] = params[..., "
          "indices[i], ...].\n\n"
          "Shape: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. "
          "batch_dims: leading axes that "
          "params and indices share.\nAlong axis 0 the gradient is slices. Errors: InvalidArgument "
          "for an index outside the axis.");
  r.op("GatherNd", HostAccess::kNone)
      .input("params: Tparams")
      .input("indices: Tindices")
      .output("output: Tparams")
      .attr("Tparams: type")
      .attr("Tindices: {int32, int64}")
      .shape(gather_nd_shape)
      .gradient(gather_nd_gradient, {"indices"})
      .doc(
          "Slices of `params` at multi-dimensional indices: output[i, ...] = params[indices[i, 0], "
          "indices[i, 1], ...].\n\n"
          "Shape: indices.shape[:-1] + params.shape[indices.shape[-1]:]. Errors: InvalidArgument "
          "for an index outside params.");
}

void register_scatters(OpRegistry& r) {
  r.op("ScatterNd", HostAccess::kNone)
      .input("indices: Tindices")
      .input("updates: T")
      .input("shape: Tindices")
      .output("output: T")
      .attr("T: numbertype")
      .attr("Tindices: {int32, int64}")
      .host("shape")
      .shape(scatter_nd_shape)
      .gradient(scatter_nd_gradient, {"indices"})
      .doc(
          "Zeros of shape `shape`, with updates[i, ...] added at indices[i]. Repeated indices add "
          "up, in their order.\n\n"
          "Errors: InvalidArgument for an index outside shape.");
  const struct {
    const char* name;
    const char* types;
    GradientFn gradient;
    const char* doc;
  } scatters[] = {
      {"TensorScatterUpdate", "type", tensor_update_gradient,
       "`tensor` with updates[i, ...] in place of what stands at indices[i]; of repeated indices "
       "the last one wins."},
      {"TensorScatterAdd", "numbertype", tensor_add_gradient,
       "`tensor` with updates[i, ...] added at indices[i]."},
      {"TensorScatterSub", "numbertype", tensor_add_gradient,
       "`tensor` with updates[i, ...] subtracted at indices[i]."},
  };
  for (const auto& scatter : scatters) {
    r.op(scatter.name, HostAccess::kNone)
        .input("tensor: T")
        .input("indices: Tindices")
        .input("updates: T")
        .output("output: T")
        .attr(concat("T: ", scatter.types))
        .attr("Tindices: {int32, int64}")
        .shape(tensor_scatter_shape)
        .in_place("tensor", "output")
        .gradient(scatter.gradient, {"indices"})
        .doc(concat(scatter.doc,
                    "\n\nupdates: shape indices.shape[:-1] + tensor.shape[indices.shape[-1]:].\n"
                    "Errors: InvalidArgument for an index outside tensor."));
  }
}

void register_variable_scatters(OpRegistry& r) {
  const struct {
    const char* name;
    const char* types;
    const char* doc;
  } scatters[] = {
      {"ResourceScatterNdUpdate", "type",
       "Replaces what stands in a variable at indices[i] by updates[i, ...]; of repeated indices "
       "the last one wins."},
      {"ResourceScatterNdAdd", "numbertype",
       "Adds updates[i, ...] to a variable at indices[i]. Repeated indices add up, in their "
       "order."},
      {"ResourceScatterNdSub", "numbertype",
       "Subtracts updates[i, ...] from a variable at indices[i], for repeated indices one after "
       "the other."},
  };
  for (const auto& scatter : scatters) {
    r.op(scatter.name, HostAccess::kNone)
        .input("resource: resource")
        .input("indices: Tindices")
        .input("updates: dtype")
        .attr(concat("dtype: ", scatter.types))
        .attr("Tindices: {int32, int64}")
        .stateful()
        .access("resource", Access::kWrite)
        .shape(resource_scatter_nd_shape)
        .not_differentiable()
        .doc(concat(scatter.doc,
                    "\n\nupdates: shape indices.shape[:-1] + variable.shape[indices.shape[-1]:].\n"
                    "Errors: InvalidArgument for an index outside the variable, which is then left "
                    "unchanged; FailedPrecondition when it is uninitialised."));
  }
}

}  // namespace

void register_gather_ops(OpRegistry& r) {
  register_gathers(r);
  register_scatters(r);
  register_variable_scatters(r);
  r.finish("gather");
}

}  // namespace treenail
