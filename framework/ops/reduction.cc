// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes, and L2Loss. Positions of extrema: arg_reduction.cc. Running
// sums: scan.cc. Loops: kernels/cpu/reductions/reduction.cc.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/reduction_shape.h"
#include "framework/ops/value_arithmetic.h"

namespace treenail {
namespace {

// The axes reduced, where rank and axes are known.
std::optional<std::vector<bool>> known_axes(const GradientContext& c) {
  const PartialShape shape = c.input_shape(0);
  const Tensor* axes = c.input_constant(1);
  if (!shape.rank_known() || axes == nullptr) return std::nullopt;
  const auto value = partial_value_of(*axes);
  if (value == nullptr) return std::nullopt;
  return reduced_axes(*value, shape.rank());
}

// The input's shape with extent 1 along the reduced axes, as a value.
Value kept_shape(GradientContext& c) {
  const std::optional<std::vector<bool>> axes = known_axes(c);
  const PartialShape shape = c.input_shape(0);
  if (axes && shape.fully_known()) {
    std::vector<int64_t> kept(shape.dims().begin(), shape.dims().end());
    for (size_t i = 0; i < kept.size(); ++i) {
      if ((*axes)[i]) kept[i] = 1;
    }
    return c.e.const_ints(DType::kInt64, kept);
  }
  return c.e.call("ReducedShape", {c.input_shape_value(0), c.input(1)});
}

// A value of the reduced shape brought to where it broadcasts against the input.
Value with_kept_axes(GradientContext& c, Value reduced) {
  return c.op().get_bool("keep_dims") ? reduced : c.e.reshape(reduced, kept_shape(c));
}

Value spread(GradientContext& c, Value reduced) {
  return c.e.call("BroadcastTo", {with_kept_axes(c, reduced), c.input_shape_value(0)});
}

void sum_gradient(GradientContext& c) { c.set(0, spread(c, c.gradient())); }

// One over the number of elements that went into one mean, as a scalar of the input's dtype, or of
// float where that is half-width: there it would be rounded to 3 digits and fewer, or to 0.
Value mean_weight(GradientContext& c) {
  Emitter& e = c.e;
  const DType t = widened_type(c.input_dtype(0));
  const PartialShape shape = c.input_shape(0);
  if (const auto axes = known_axes(c)) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank() && count != kUnknown; ++i) {
      if ((*axes)[static_cast<size_t>(i)])
        count = shape.dim(i) == kUnknown ? kUnknown : count * shape.dim(i);
    }
    if (count != kUnknown)
      return e.const_scalar(t, 1.0 / static_cast<double>(std::max<int64_t>(count, 1)));
  }
  const Value shape_value = c.input_shape_value(0);
  const Value kept = e.call("ReducedShape", {shape_value, c.input(1)});
  const Value ratios = e.call(
      "FloorDiv", {shape_value, e.call("Maximum", {kept, e.const_scalar(DType::kInt64, 1)})});
  const Value axis = e.const_ints(DType::kInt32, std::vector<int64_t>{0});
  const Value count =
      e.call("Maximum", {e.call("Prod", {ratios, axis}), e.const_scalar(DType::kInt64, 1)});
  return e.cast(e.call("Reciprocal", {e.cast(count, DType::kFloat64)}), t);
}

void mean_gradient(GradientContext& c) {
  const Value each = c.e.mul(c.e.widened(c.gradient()), mean_weight(c));
  c.set(0, spread(c, c.e.cast(each, c.input_dtype(0))));
}

// Split evenly among the elements that equal the extremum.
void extremum_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value y = with_kept_axes(c, c.output(0)), g = with_kept_axes(c, c.gradient());
  const Value equal = e.call("Equal", {y, c.input(0)});
  const Value chosen = e.cast(equal, widened_type(c.input_dtype(0)));
  const Value count = e.call("Sum", {chosen, c.input(1)}, {{"keep_dims", true}});
  const Value share = e.cast(e.div(e.widened(g), count), c.input_dtype(0));
  c.set(0, e.mul(share, e.cast(equal, c.input_dtype(0))));
}

// ||x|| grows along x / ||x||; 0 at 0.
void norm_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value direction = e.call("DivNoNan", {c.input(0), with_kept_axes(c, c.output(0))});
  c.set(0, e.mul(direction, with_kept_axes(c, c.gradient())));
}

// How prod_gradient brings the reduced axes together: a permutation that puts them first, the shape
// with them as one axis, and the permutation back.
struct ReducedFirst {
  Value order;
  Value flat;
  Value back;
};

ReducedFirst reduced_first(GradientContext& c) {
  Emitter& e = c.e;
  const PartialShape shape = c.input_shape(0);
  const std::optional<std::vector<bool>> axes = known_axes(c);
  if (!axes || !shape.fully_known()) {
    const std::vector<Value> inputs = {c.input_shape_value(0), c.input(1)};
    const std::vector<Value> found = e.emit("ReductionOrder", inputs, {});
    return {found[0], found[1], e.call("InvertPermutation", {found[0]})};
  }
  std::vector<int64_t> order, flat = {1};
  for (const bool wanted : {true, false}) {
    for (size_t i = 0; i < axes->size(); ++i) {
      if ((*axes)[i] != wanted) continue;
      const int64_t extent = shape.dim(static_cast<int>(i));
      order.push_back(static_cast<int64_t>(i));
      if (wanted) {
        flat[0] *= extent;
      } else {
        flat.push_back(extent);
      }
    }
  }
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  const auto ints = [&](const std::vector<int64_t>& v) { return e.const_ints(DType::kInt64, v); };
  return {ints(order), ints(flat), ints(back)};
}

// The product of all other elements is the product of those before and of those behind: right for
// zeros, too.
void prod_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const ReducedFirst first = reduced_first(c);
  const Value moved = e.call("Transpose", {c.input(0), first.order});
  const Value flat = e.reshape(moved, first.flat);
  const Value axis = e.const_scalar(DType::kInt32, 0);
  const NamedAttrs forward = {{"exclusive", true}},
                   backward = {{"exclusive", true}, {"reverse", true}};
  const Value others =
      e.mul(e.call("Cumprod", {flat, axis}, forward), e.call("Cumprod", {flat, axis}, backward));
  const Value rest = e.reshape(e.conj(others), e.shape_of(moved));
  const Value restored = e.call("Transpose", {rest, first.back});
  c.set(0, e.mul(restored, with_kept_axes(c, c.gradient())));
}

void l2_loss_gradient(GradientContext& c) { c.set(0, c.e.mul(c.input(0), c.gradient())); }

// A reduction of integers, whose known elements give a known result.
template <BinaryValue f, int64_t kEmpty>
void value_reduction_shape(ShapeContext& c) {
  reduction_shape(c);
  const PartialValue* axes = c.value(1);
  if (axes != nullptr && axes->elements.size() == 1 && !c.op().get_bool("keep_dims")) {
    set_reduced_value(c, f, kEmpty < 0 ? std::nullopt : std::optional<int64_t>(kEmpty));
  }
}

OpDeclaration reduction(OpRegistry& r, const char* name, const char* types, const std::string& what,
                        void (*shape)(ShapeContext&) = reduction_shape) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  if (types != nullptr) {
    d.input("input: T").input("reduction_indices: Tidx").output("output: T").attr(types);
  } else {
    d.input("input: bool").input("reduction_indices: Tidx").output("output: bool");
  }
  d.attr("keep_dims: bool = false").attr("Tidx: {int32, int64} = int32");
  d.host("reduction_indices").shape(shape).reduction();
  d.doc(what +
        "\n\nreduction_indices: axes to reduce, a scalar or vector in [-rank, rank), each at most "
        "once; none for an empty vector. "
        "They are removed from the shape, or become 1 with keep_dims. "
        "Errors: InvalidArgument for an axis out of range or named twice.");
  return d;
}

}  // namespace

std::vector<bool> reduced_axes(const PartialValue& axes, int rank) {
  std::vector<bool> reduced(static_cast<size_t>(rank));
  for (const std::optional<int64_t>& axis : axes.elements) {
    const auto i = static_cast<size_t>(ShapeContext::checked_axis(*axis, rank, "reduction axis"));
    if (reduced[i]) throw invalid_argument("reduction axis ", *axis, " is named twice");
    reduced[i] = true;
  }
  return reduced;
}

void reduction_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (c.input(1).rank_known() && c.input(1).rank() > 1) {
    throw invalid_argument("reduction_indices must be a scalar or a vector, got shape ",
                           c.input(1));
  }
  const bool keep = c.op().get_bool("keep_dims");
  const PartialValue* axes = c.value(1);
  if (!input.rank_known()) return c.set_output(0, PartialShape());
  if (axes == nullptr || !axes->fully_known()) {
    return c.set_output(0, keep ? PartialShape::unknown_with_rank(input.rank()) : PartialShape());
  }
  const std::vector<bool> reduced = reduced_axes(*axes, input.rank());
  std::vector<int64_t> dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dims.push_back(input.dim(i));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape(dims));
}

void register_reduction_ops(OpRegistry& r) {
  reduction(r, "Sum", "T: numbertype",
            "Sum of elements along axes; 0 of none.\n\nIntegers wrap around.",
            value_reduction_shape<sum_value, 0>)
      .gradient(sum_gradient, {"reduction_indices"});
  reduction(r, "Mean", "T: numbertype",
            "Mean of elements along axes; NaN of none (0 for integers, whose mean is rounded "
            "toward zero).")
      .gradient(mean_gradient, {"reduction_indices"});
  reduction(r, "Prod", "T: numbertype",
            "Product of elements along axes; 1 of none.\n\nIntegers wrap around.",
            value_reduction_shape<product_value, 1>)
      .gradient(prod_gradient, {"input", "reduction_indices"});
  reduction(
      r, "Max", "T: realnumbertype",
      "Largest element along axes, NaN if one is NaN; of none the lowest value of the type (-inf).",
      value_reduction_shape<larger_value, -1>)
      .gradient(extremum_gradient, {"input", "reduction_indices", "output"});
  reduction(r, "Min", "T: realnumbertype",
            "Smallest element along axes, NaN if one is NaN; of none the highest value of the type "
            "(inf).",
            value_reduction_shape<smaller_value, -1>)
      .gradient(extremum_gradient, {"input", "reduction_indices", "output"});
  reduction(r, "EuclideanNorm", "T: {half, bfloat16, float, double}",
            "Square root of the sum of squares along axes.")
      .gradient(norm_gradient, {"input", "reduction_indices", "output"});
  reduction(r, "All", nullptr, "Whether all elements along axes are true; true of none.")
      .not_differentiable();
  reduction(r, "Any", nullptr, "Whether any element along axes is true; false of none.")
      .not_differentiable();
  r.op("L2Loss", HostAccess::kNone)
      .input("t: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}")
      .shape(scalar_shape)
      .gradient(l2_loss_gradient, {"t"})
      .doc("Half the sum of squares, sum(t * t) / 2, as a scalar.");
  r.finish("reduction");
}

}  // namespace treenail
