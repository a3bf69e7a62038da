// SPDX-License-Identifier: Apache-2.0
// Tensors put together along an axis and taken apart again: along an existing one (Concat, Split)
// or a new one (Pack, Unpack).
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/value_arithmetic.h"

namespace treenail {
namespace {

// --- Concat -----------------------------------------------------------------------------------

// The shape all pieces have in common, apart from `axis` (-1: not known). Errors: InvalidArgument
// naming the first that differs.
PartialShape common_shape(const ShapeContext& c, int n, int axis) {
  PartialShape common;
  for (int i = 0; i < n; ++i) {
    PartialShape shape = c.input(i);
    if (!shape.rank_known()) continue;
    if (axis < 0) {
      shape = PartialShape::unknown_with_rank(shape.rank());
    } else if (axis < shape.rank()) {
      shape = shape.with_dim(axis, kUnknown);
    }
    if (!common.compatible(shape)) {
      throw invalid_argument("Dimensions of inputs should match: shape[0] = ", c.input(0),
                             " vs. shape[", i, "] = ", c.input(i),
                             axis >= 0 ? concat(" (all but axis ", axis, ")") : std::string());
    }
    common = ShapeContext::merge(common, shape, "inputs");
  }
  return common;
}

void concat_value(ShapeContext& c, int n, const PartialShape& output) {
  if (output.rank() != 1) return;
  PartialValue joined;
  for (int i = 0; i < n; ++i) {
    if (const PartialValue* value = c.value(i)) {
      joined.elements.insert(joined.elements.end(), value->elements.begin(), value->elements.end());
    } else if (c.input(i).fully_known() && is_integer(c.input_info(i).dtype) &&
               c.input(i).num_elements() <= kMaxRank) {
      joined.elements.resize(joined.elements.size() +
                             static_cast<size_t>(c.input(i).num_elements()));
    } else {
      return;
    }
  }
  const DType dtype = c.op().output_type(0);
  if (dtype == DType::kInt32 || dtype == DType::kInt64) c.set_value(0, std::move(joined));
}

void concat_shape(ShapeContext& c) {
  const int n = c.num_inputs() - 1;
  c.with_rank(n, 0);
  int rank = -1;
  for (int i = 0; i < n; ++i) {
    if (c.input(i).rank() == 0)
      throw invalid_argument("Can't concatenate scalars (use Pack instead): ", c.op().input_name(i),
                             " is a scalar");
    rank = std::max(rank, c.input(i).rank());
  }
  const std::optional<int> axis = known_axis(c, n, rank, "concat_dim");
  PartialShape output = common_shape(c, n, axis.value_or(-1));
  if (!output.rank_known()) return;
  if (axis) {
    int64_t extent = 0;
    for (int i = 0; i < n; ++i) extent = sum_of_dims(extent, c.input(i).dim(*axis));
    output = output.with_dim(*axis, extent);
  }
  c.set_output(0, output);
  concat_value(c, n, output);
  if (axis == 0) set_joined_constant(c, n, output);
}

void concat_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const int n = c.num_inputs() - 1;
  const Value axis = c.input(n);
  const Value gradient = c.gradient();
  std::vector<int64_t> sizes;
  const Tensor* known_axis_value = c.input_constant(n);
  for (int i = 0; i < n && known_axis_value != nullptr; ++i) {
    const PartialShape shape = c.input_shape(i);
    if (!shape.rank_known()) break;
    const int64_t given = scalar_int64(*known_axis_value);
    const int64_t extent = shape.dim(static_cast<int>(given < 0 ? given + shape.rank() : given));
    if (extent == kUnknown) break;
    sizes.push_back(extent);
  }
  if (static_cast<int>(sizes.size()) == n) {
    if (n == 1) {
      c.set(0, gradient);
      return;
    }
    const std::vector<Value> inputs = {gradient, e.const_ints(DType::kInt64, sizes),
                                       e.cast(axis, DType::kInt32)};
    const std::vector<Value> parts = e.emit("SplitV", inputs, {{"num_split", n}});
    for (int i = 0; i < n; ++i) c.set(i, parts[static_cast<size_t>(i)]);
    return;
  }
  std::vector<Value> shapes;
  for (int i = 0; i < n; ++i) shapes.push_back(c.input_shape_value(i, DType::kInt32));
  if (n == 1) {
    c.set(0, gradient);
    return;
  }
  std::vector<Value> inputs = {e.cast(axis, DType::kInt32)};
  inputs.insert(inputs.end(), shapes.begin(), shapes.end());
  const std::vector<Value> offsets = e.emit("ConcatOffset", inputs, {});
  for (int i = 0; i < n; ++i) {
    if (c.needed(i))
      c.set(i, e.call("Slice",
                      {gradient, offsets[static_cast<size_t>(i)], shapes[static_cast<size_t>(i)]}));
  }
}

// --- Split ------------------------------------------------------------------------------------

void split_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  const PartialShape value = c.with_rank_at_least(1, 1);
  const int64_t n = c.op().get_int("num_split");
  const std::optional<int> axis = known_axis(c, 0, value.rank(), "split_dim");
  PartialShape part =
      value.rank_known() ? PartialShape::unknown_with_rank(value.rank()) : PartialShape();
  if (axis) {
    const int64_t extent = value.dim(*axis);
    if (extent != kUnknown && extent % n != 0) {
      throw invalid_argument(
          "Number of ways to split should evenly divide the split dimension, but got split_dim ",
          *axis, " (size = ", extent, ") and num_split ", n);
    }
    part = value.with_dim(*axis, extent == kUnknown ? kUnknown : extent / n);
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
}

void split_v_shape(ShapeContext& c) {
  const PartialShape value = c.with_rank_at_least(0, 1);
  const int n = c.num_outputs();
  const int64_t count = c.with_rank(1, 1)[0];
  c.with_rank(2, 0);
  if (count != kUnknown && count != n) {
    throw invalid_argument("Length of size_splits should be equal to num_split: ", count, " vs. ",
                           n);
  }
  const std::optional<int> axis = known_axis(c, 2, value.rank(), "split_dim");
  const PartialValue* sizes = c.value(1);
  if (!axis || sizes == nullptr || static_cast<int>(sizes->elements.size()) != n) {
    const PartialShape part =
        value.rank_known() ? PartialShape::unknown_with_rank(value.rank()) : PartialShape();
    for (int i = 0; i < n; ++i) c.set_output(i, axis ? value.with_dim(*axis, kUnknown) : part);
    return;
  }
  int64_t total = 0;
  int rest = -1;
  for (int i = 0; i < n; ++i) {
    const std::optional<int64_t> size = sizes->elements[static_cast<size_t>(i)];
    if (!size) {
      total = kUnknown;
    } else if (*size == -1) {
      if (rest >= 0) throw invalid_argument("Only one size may be -1, not both ", rest, " and ", i);
      rest = i;
    } else if (*size < 0) {
      throw invalid_argument("Split size at index ", i, " must be >= 0 or -1, got ", *size);
    } else {
      total = sum_of_dims(total, *size);
    }
  }
  const int64_t extent = value.dim(*axis);
  const bool known = total != kUnknown && extent != kUnknown;
  if (known && (rest < 0 ? total != extent : total > extent)) {
    throw invalid_argument(
        "Determined shape must either match input shape along split_dim exactly if fully "
        "specified, or be less "
        "than the size of the input along split_dim if not fully specified. Got: ",
        total, ", input has ", extent, " along axis ", *axis);
  }
  for (int i = 0; i < n; ++i) {
    int64_t size = sizes->elements[static_cast<size_t>(i)].value_or(kUnknown);
    if (i == rest) size = known ? extent - total : kUnknown;
    c.set_output(i, value.with_dim(*axis, size));
  }
}

// The gradients of all outputs, joined along `axis`; zeros where an output has none.
Value joined_gradients(GradientContext& c, Value axis) {
  std::vector<Value> parts;
  for (int i = 0; i < c.num_outputs(); ++i) parts.push_back(c.gradient(i));
  if (parts.size() == 1) return parts[0];
  parts.push_back(axis);
  return c.e.call("Concat", parts);
}

void split_gradient(GradientContext& c) { c.set(1, joined_gradients(c, c.input(0))); }
void split_v_gradient(GradientContext& c) { c.set(0, joined_gradients(c, c.input(2))); }

// --- Pack and Unpack --------------------------------------------------------------------------

void pack_shape(ShapeContext& c) {
  const int n = c.num_inputs();
  PartialShape common = c.input(0);
  for (int i = 1; i < n; ++i) {
    if (!common.compatible(c.input(i))) {
      throw invalid_argument("Shapes of all inputs must match: values[0].shape = ", c.input(0),
                             " != values[", i, "].shape = ", c.input(i));
    }
    common = ShapeContext::merge(common, c.input(i), "inputs");
  }
  if (!common.rank_known()) return;
  const int axis =
      static_cast<int>(ShapeContext::checked_axis(c.op().get_int("axis"), common.rank() + 1));
  c.set_output(0, common.inserted(axis, n));
  if (axis == 0) set_joined_constant(c, n, common.inserted(axis, n));
  const DType dtype = c.op().output_type(0);
  if (common.rank() != 0 || (dtype != DType::kInt32 && dtype != DType::kInt64)) return;
  PartialValue packed;
  for (int i = 0; i < n; ++i) packed.elements.push_back(known_scalar(c, i));
  c.set_value(0, std::move(packed));
}

void unpack_shape(ShapeContext& c) {
  const PartialShape value = c.with_rank_at_least(0, 1);
  if (!value.rank_known()) return;
  const int axis =
      static_cast<int>(ShapeContext::checked_axis(c.op().get_int("axis"), value.rank()));
  const int n = c.num_outputs();
  if (value.dim(axis) != kUnknown && value.dim(axis) != n) {
    throw invalid_argument("Input shape axis ", axis, " must equal ", n, ", got shape ", value);
  }
  for (int i = 0; i < n; ++i) {
    c.set_output(i, value.removed(axis));
    if (const PartialValue* known = c.value(0))
      c.set_value(i, PartialValue{{known->elements[static_cast<size_t>(i)]}, true});
  }
}

void pack_gradient(GradientContext& c) {
  const std::vector<Value> gradient = {c.gradient()};
  const std::vector<Value> parts =
      c.e.emit("Unpack", gradient, {{"num", c.num_inputs()}, {"axis", c.op().get_int("axis")}});
  for (int i = 0; i < c.num_inputs(); ++i) c.set(i, parts[static_cast<size_t>(i)]);
}

void unpack_gradient(GradientContext& c) {
  std::vector<Value> parts;
  for (int i = 0; i < c.num_outputs(); ++i) parts.push_back(c.gradient(i));
  if (parts.empty()) {
    c.set(0, c.e.call("Fill", {c.input_shape_value(0), c.e.const_scalar(c.input_dtype(0), 0)}));
    return;
  }
  c.set(0, c.e.call("Pack", parts, {{"axis", c.op().get_int("axis")}}));
}

}  // namespace

void register_joining_ops(OpRegistry& r) {
  r.op("Concat", HostAccess::kNone)
      .input("values: N * T")
      .input("axis: Tidx")
      .output("output: T")
      .attr("N: int >= 1")
      .attr("T: type")
      .attr("Tidx: {int32, int64} = int32")
      .host("axis")
      .shape(concat_shape)
      .gradient(concat_gradient, {"axis"})
      .doc(
          "The tensors joined along an existing axis.\n\naxis: negative counts from the end. All "
          "other extents must agree.");
  r.op("Split", HostAccess::kNone)
      .input("split_dim: int32")
      .input("value: T")
      .output("output: num_split * T")
      .attr("num_split: int >= 1")
      .attr("T: type")
      .host("split_dim")
      .shape(split_shape)
      .gradient(split_gradient, {"split_dim"})
      .doc(
          "The tensor cut into `num_split` equal parts along axis `split_dim`.\n\n"
          "Errors: InvalidArgument when the extent is not divisible.");
  r.op("SplitV", HostAccess::kNone)
      .input("value: T")
      .input("size_splits: Tlen")
      .input("split_dim: int32")
      .output("output: num_split * T")
      .attr("num_split: int >= 1")
      .attr("T: type")
      .attr("Tlen: {int32, int64} = int64")
      .host("size_splits")
      .host("split_dim")
      .shape(split_v_shape)
      .gradient(split_v_gradient, {"split_dim"})
      .doc(
          "The tensor cut along axis `split_dim` into parts of the given sizes, one of which may "
          "be -1: what is left.");
  r.op("Pack", HostAccess::kNone)
      .input("values: N * T")
      .output("output: T")
      .attr("N: int >= 1")
      .attr("T: type")
      .attr("axis: int = 0")
      .shape(pack_shape)
      .gradient(pack_gradient)
      .doc(
          "Tensors of one shape side by side along a new axis.\n\naxis: its place, negative counts "
          "from the end of the result.");
  r.op("Unpack", HostAccess::kNone)
      .input("value: T")
      .output("output: num * T")
      .attr("num: int >= 0")
      .attr("T: type")
      .attr("axis: int = 0")
      .shape(unpack_shape)
      .gradient(unpack_gradient)
      .doc(
          "The slices of a tensor along `axis`, whose extent is `num`; the axis goes. The inverse "
          "of Pack.");
  r.finish("joining");
}

}  // namespace treenail
