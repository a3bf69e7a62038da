// SPDX-License-Identifier: Apache-2.0
// Parts of a tensor: Slice by begin and size, StridedSlice with everything NumPy's basic indexing
// says; the same places of a variable written.
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/op/slice_spec.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/variable_rules.h"

namespace treenail {
namespace {

// --- Slice ------------------------------------------------------------------------------------

// Elements [begin, begin + size) of a known value vector stay known.
void slice_value(ShapeContext& c, int64_t begin, int64_t size) {
  const PartialValue* value = c.value(0);
  if (value == nullptr || value->scalar) return;
  const auto first = value->elements.begin() + begin;
  c.set_value(0, PartialValue{{first, first + size}, false});
}

void check_slice(int i, int64_t begin, int64_t size, int64_t extent) {
  if (begin < 0 || (extent != kUnknown && begin > extent)) {
    throw invalid_argument("Expected begin[", i, "] in [0, ",
                           extent == kUnknown ? std::string("?") : std::to_string(extent),
                           "], but got ", begin);
  }
  if (size < -1 || (extent != kUnknown && size > extent - begin)) {
    throw invalid_argument("Expected size[", i, "] in [0, ",
                           extent == kUnknown ? std::string("?") : std::to_string(extent - begin),
                           "], but got ", size);
  }
}

void slice_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  int64_t rank = input.rank_known() ? input.rank() : kUnknown;
  for (int i = 1; i <= 2; ++i) {
    const int64_t length = c.with_rank(i, 1)[0];
    if (rank != kUnknown && length != kUnknown && length != rank) {
      throw invalid_argument("Expected begin and size arguments to be 1-D tensors of size ", rank,
                             ", but got shapes ", c.input(1), " and ", c.input(2),
                             " instead; input has shape ", input);
    }
    if (rank == kUnknown) rank = length;
  }
  if (rank == kUnknown) return;
  if (rank > kMaxRank)
    throw invalid_argument("begin has ", rank, " elements, at most ", kMaxRank,
                           " axes are supported");
  const PartialValue* begin = c.value(1);
  const PartialValue* size = c.value(2);
  std::vector<int64_t> dims;
  for (int i = 0; i < static_cast<int>(rank); ++i) {
    const std::optional<int64_t> from =
        begin ? begin->elements[static_cast<size_t>(i)] : std::nullopt;
    const std::optional<int64_t> count =
        size ? size->elements[static_cast<size_t>(i)] : std::nullopt;
    if (from && count) check_slice(i, *from, *count, input.dim(i));
    if (count && *count >= 0) {
      dims.push_back(*count);
    } else if (count && *count == -1 && from && input.dim(i) != kUnknown) {
      dims.push_back(input.dim(i) - *from);
    } else {
      dims.push_back(kUnknown);
    }
  }
  c.set_output(0, PartialShape(std::span<const int64_t>(dims)));
  if (rank == 1 && dims[0] != kUnknown && begin && begin->elements[0])
    slice_value(c, *begin->elements[0], dims[0]);
}

void slice_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const DType index = index_dtype(c.input_dtype(1), c.input_shape(0));
  const Value begin = e.cast(c.input(1), index);
  const Value gradient = c.gradient();
  const Value end = e.add(begin, e.shape_of(gradient, index));
  c.set(0, e.call("StridedSliceGrad",
                  {c.input_shape_value(0, index), begin, end, e.ones_like(begin), gradient}));
}

// --- StridedSlice -----------------------------------------------------------------------------

// Checks ranks and lengths of begin, end and strides at inputs first ... first + 2; gives the
// common length.
int64_t num_entries(const ShapeContext& c, int first) {
  int64_t entries = kUnknown;
  for (int i = first; i < first + 3; ++i) {
    const int64_t length = c.with_rank(i, 1)[0];
    if (entries != kUnknown && length != kUnknown && length != entries) {
      throw invalid_argument(
          "Expected begin, end, and strides to be 1D equal size tensors, but got shapes ",
          c.input(first), ", ", c.input(first + 1), ", and ", c.input(first + 2), " instead.");
    }
    if (entries == kUnknown) entries = length;
  }
  return entries;
}

void strided_slice_shape(ShapeContext& c) {
  const int64_t entries = num_entries(c, 1);
  const SliceSpec spec = resolve_slice(c.input(0), c.value(1), c.value(2), c.value(3), entries,
                                       SliceMasks::of(c.op()));
  if (!spec.rank_known) return;
  c.set_output(0, spec.output);
  const PartialValue* value = c.value(0);
  if (value == nullptr || value->scalar || spec.output.rank() > 1) return;
  const SliceAxis& axis = spec.axes[0];
  const bool same = spec.output.rank() == 0 ||
                    spec.output[0] == axis.count;  // not a new axis beside a shrunk one
  if (!axis.begin || !axis.stride || axis.count == kUnknown || !same) return;
  PartialValue result;
  result.scalar = spec.output.rank() == 0;
  for (int64_t i = 0; i < axis.count; ++i) {
    result.elements.push_back(value->elements[static_cast<size_t>(*axis.begin + i * *axis.stride)]);
  }
  c.set_value(0, std::move(result));
}

NamedAttrs masks_of(const OpInstance& op) {
  NamedAttrs attrs;
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attrs.emplace_back(name, op.get_int(name));
  }
  return attrs;
}

void strided_slice_gradient(GradientContext& c) {
  const DType index = index_dtype(c.input_dtype(1), c.input_shape(0));
  const auto spec = [&](int i) { return c.e.cast(c.input(i), index); };
  c.set(0, c.e.call("StridedSliceGrad",
                    {c.input_shape_value(0, index), spec(1), spec(2), spec(3), c.gradient()},
                    masks_of(c.op())));
}

void strided_slice_grad_shape(ShapeContext& c) {
  const PartialShape output = extents_from_value(c, 0);
  const int64_t entries = num_entries(c, 1);
  const SliceSpec spec =
      resolve_slice(output, c.value(1), c.value(2), c.value(3), entries, SliceMasks::of(c.op()));
  if (spec.rank_known && !spec.output.compatible(c.input(4))) {
    throw invalid_argument("shape of dy was ", c.input(4), " instead of ", spec.output);
  }
  c.set_output(0, output);
}

void strided_slice_grad_gradient(GradientContext& c) {
  c.set(4, c.e.call("StridedSlice", {c.gradient(), c.input(1), c.input(2), c.input(3)},
                    masks_of(c.op())));
}

void strided_slice_add_shape(ShapeContext& c) {
  const SliceSpec spec = resolve_slice(c.input(0), c.value(1), c.value(2), c.value(3),
                                       num_entries(c, 1), SliceMasks::of(c.op()));
  if (spec.rank_known && !spec.output.compatible(c.input(4))) {
    throw invalid_argument("the slice has shape ", spec.output, ", the value to add has shape ",
                           c.input(4));
  }
  c.set_output(0, c.input(0));
}

void strided_slice_add_gradient(GradientContext& c) {
  c.set(0, c.gradient());
  c.set(4, c.e.call("StridedSlice", {c.gradient(), c.input(1), c.input(2), c.input(3)},
                    masks_of(c.op())));
}

void strided_slice_assign_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("T"));
  const SliceSpec spec = resolve_slice(shape, c.value(1), c.value(2), c.value(3), num_entries(c, 1),
                                       SliceMasks::of(c.op()));
  if (spec.rank_known && !spec.output.compatible(c.input(4))) {
    throw invalid_argument("the slice of the variable has shape ", spec.output,
                           ", the value has shape ", c.input(4));
  }
}

constexpr char kMaskDoc[] =
    "begin_mask, end_mask: bit i set leaves that end of range i open. ellipsis_mask: entry i "
    "stands for all axes that the others do "
    "not name. new_axis_mask: entry i makes a new axis of extent 1. shrink_axis_mask: entry i is "
    "an index, its axis goes.";

void declare_masks(OpDeclaration op, std::string_view elements = "T: type") {
  op.attr(elements)
      .attr("Index: {int32, int64}")
      .attr("begin_mask: int = 0")
      .attr("end_mask: int = 0")
      .attr("ellipsis_mask: int = 0")
      .attr("new_axis_mask: int = 0")
      .attr("shrink_axis_mask: int = 0")
      .host("begin")
      .host("end")
      .host("strides");
}

}  // namespace

void register_slicing_ops(OpRegistry& r) {
  r.op("Slice", HostAccess::kNone)
      .input("input: T")
      .input("begin: Index")
      .input("size: Index")
      .output("output: T")
      .attr("T: type")
      .attr("Index: {int32, int64}")
      .host("begin")
      .host("size")
      .shape(slice_shape)
      .gradient(slice_gradient, {"begin"})
      .doc(
          "The part of `input` that begins at `begin` and has shape `size`.\n\nsize: -1 takes all "
          "that is left along an axis.\n"
          "Errors: InvalidArgument when the part is not inside `input`.");

  OpDeclaration slice = r.op("StridedSlice", HostAccess::kNone);
  slice.input("input: T")
      .input("begin: Index")
      .input("end: Index")
      .input("strides: Index")
      .output("output: T");
  declare_masks(slice);
  slice.shape(strided_slice_shape)
      .gradient(strided_slice_gradient, {"begin", "end", "strides"})
      .doc(concat("input[begin[0]:end[0]:strides[0], ...], as NumPy's basic indexing.\n\n",
                  kMaskDoc,
                  "\nErrors: InvalidArgument for a stride of 0, more ranges than axes, or an index "
                  "out of bounds."));

  OpDeclaration gradient = r.op("StridedSliceGrad", HostAccess::kNone);
  gradient.input("shape: Index")
      .input("begin: Index")
      .input("end: Index")
      .input("strides: Index")
      .input("dy: T")
      .output("output: T");
  declare_masks(gradient);
  gradient.host("shape")
      .shape(strided_slice_grad_shape)
      .gradient(strided_slice_grad_gradient, {"begin", "end", "strides"})
      .doc(concat("Zeros of shape `shape`, with `dy` in the places that StridedSlice with the same "
                  "ranges takes.\n\n",
                  kMaskDoc));

  OpDeclaration add = r.op("TensorStridedSliceAdd", HostAccess::kNone);
  add.input("input: T")
      .input("begin: Index")
      .input("end: Index")
      .input("strides: Index")
      .input("value: T")
      .output("output: T");
  declare_masks(add, "T: numbertype");
  add.allocates_outputs()
      .shape(strided_slice_add_shape)
      .gradient(strided_slice_add_gradient, {"begin", "end", "strides"})
      .doc(concat("`input`, with `value` added in the places that StridedSlice with the same "
                  "ranges takes: in the same memory where nothing else reads it.\n\n"
                  "value: the shape of that slice; it is not broadcast.\n",
                  kMaskDoc,
                  "\nErrors: InvalidArgument for a stride of 0, more ranges than axes, an index "
                  "out of bounds or a value of another shape."));

  OpDeclaration assign = r.op("ResourceStridedSliceAssign", HostAccess::kNone);
  assign.input("resource: resource")
      .input("begin: Index")
      .input("end: Index")
      .input("strides: Index")
      .input("value: T");
  declare_masks(assign);
  assign.stateful()
      .access("resource", Access::kWrite)
      .shape(strided_slice_assign_shape)
      .not_differentiable()
      .doc(concat("Writes `value` to the places of a variable that StridedSlice with the same "
                  "ranges takes.\n\nvalue: the shape of that slice; it is not broadcast.\n",
                  kMaskDoc,
                  "\nErrors: InvalidArgument for a stride of 0, more ranges than axes, an index "
                  "out of bounds or a value of another shape; FailedPrecondition when the "
                  "variable is uninitialised."));
  r.finish("slicing");
}

}  // namespace treenail
