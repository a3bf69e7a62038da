// SPDX-License-Identifier: Apache-2.0
// Ops on shapes: asking for them, computing with them, and giving a tensor another one without
// moving its elements.
#include <algorithm>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/value_arithmetic.h"

namespace treenail {
namespace {

// --- Asking -----------------------------------------------------------------------------------

void shape_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& input = c.input(i);
    if (!input.rank_known()) {
      c.set_output(i, PartialShape{kUnknown});
      continue;
    }
    c.set_output(i, PartialShape{input.rank()});
    PartialValue value;
    for (int64_t dim : input.dims()) {
      value.elements.push_back(dim == kUnknown ? std::nullopt : std::optional<int64_t>(dim));
    }
    c.set_value(i, std::move(value));
  }
}

void set_scalar_value(ShapeContext& c, int64_t number) {
  c.set_output(0, Shape());
  if (number == kUnknown) return;
  c.set_value(0, PartialValue{{number}, true});
}

void size_shape(ShapeContext& c) {
  set_scalar_value(c, c.input(0).rank_known() ? product_of(c.input(0).dims()) : kUnknown);
}

void rank_shape(ShapeContext& c) {
  set_scalar_value(c, c.input(0).rank_known() ? c.input(0).rank() : kUnknown);
}

// --- Another shape over the same elements -----------------------------------------------------

void reshape_gradient(GradientContext& c) {
  c.set(0, c.e.reshape(c.gradient(), c.input_shape_value(0)));
}

// The elements are the same in the same order, so a known value stays known.
void pass_value(ShapeContext& c, const PartialShape& output) {
  set_joined_constant(c, 1, output);
  const PartialValue* value = c.value(0);
  if (value == nullptr || !output.fully_known() || output.rank() > 1) return;
  if (output.num_elements() != static_cast<int64_t>(value->elements.size())) return;
  c.set_value(0, PartialValue{value->elements, output.rank() == 0});
}

// Fills in the one extent that is -1 or unknown, when the number of elements tells it.
PartialShape completed(const PartialShape& target, int missing, bool wildcard, int64_t elements) {
  const PartialShape rest = target.removed(missing);
  const int64_t others = rest.num_elements();
  if (others == kUnknown || elements == kUnknown) return target;
  if (others == 0) {
    if (!wildcard) return target;
    throw invalid_argument(
        "reshape cannot infer the missing input size for an empty tensor unless all specified "
        "input "
        "sizes are non-zero; the shape asked for is ",
        target);
  }
  if (elements % others != 0) {
    throw invalid_argument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape ", target, " requires a multiple of ",
                           others);
  }
  return target.with_dim(missing, elements / others);
}

void reshape_shape(ShapeContext& c) {
  PartialShape target = c.shape_from_value(1);
  const int64_t elements = c.input(0).rank_known() ? product_of(c.input(0).dims()) : kUnknown;
  const PartialValue* asked = c.value(1);
  if (asked != nullptr) {
    int wildcard = -1;
    int missing = -1;
    int num_missing = 0;
    for (int i = 0; i < target.rank(); ++i) {
      if (target[i] != kUnknown) continue;
      missing = i;
      ++num_missing;
      if (!asked->elements[static_cast<size_t>(i)]) continue;
      if (wildcard >= 0)
        throw invalid_argument("Only one input size may be -1, not both ", wildcard, " and ", i);
      wildcard = i;
    }
    if (num_missing == 1) target = completed(target, missing, wildcard >= 0, elements);
  }
  const int64_t wanted = target.num_elements();
  if (wanted != kUnknown && elements != kUnknown && wanted != elements) {
    throw invalid_argument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape ", target, " has ", wanted);
  }
  c.set_output(0, target);
  pass_value(c, target);
}

void expand_dims_shape(ShapeContext& c) {
  const int64_t axes = c.input(1).rank_known() ? product_of(c.input(1).dims()) : kUnknown;
  if (axes != kUnknown && axes != 1)
    throw invalid_argument("dim must hold one element, got shape ", c.input(1));
  const PartialShape& input = c.input(0);
  if (!input.rank_known()) return;
  const std::optional<int> axis = known_axis(c, 1, input.rank() + 1, "dim");
  const PartialShape output =
      axis ? input.inserted(*axis, 1) : PartialShape::unknown_with_rank(input.rank() + 1);
  c.set_output(0, output);
  pass_value(c, output);
}

void squeeze_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.rank_known()) return;
  bool chosen[kMaxRank] = {};
  const std::vector<int64_t>& axes = c.op().get_ints("squeeze_dims");
  for (int64_t given : axes) {
    const int64_t axis = ShapeContext::checked_axis(given, input.rank(), "squeeze_dims");
    if (input[static_cast<int>(axis)] != kUnknown && input[static_cast<int>(axis)] != 1) {
      throw invalid_argument("Can not squeeze dim[", axis, "], expected a dimension of 1, got ",
                             input[static_cast<int>(axis)], " (input has shape ", input, ")");
    }
    chosen[axis] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (axes.empty() && input[i] == kUnknown) return;  // it may or may not be 1
    const bool drop = axes.empty() ? input[i] == 1 : chosen[i];
    if (!drop) dims.push_back(input[i]);
  }
  const PartialShape output{std::span<const int64_t>(dims)};
  c.set_output(0, output);
  pass_value(c, output);
}

// --- Broadcasting -----------------------------------------------------------------------------

void broadcast_to_shape(ShapeContext& c) {
  const PartialShape output = extents_from_value(c, 1);
  const PartialShape& input = c.input(0);
  if (input.rank_known() && output.rank_known()) {
    if (input.rank() > output.rank()) {
      throw invalid_argument("Rank of input (", input.rank(),
                             ") must be no greater than rank of output shape (", output.rank(),
                             "): input is ", input, ", shape is ", output);
    }
    for (int i = 0; i < input.rank(); ++i) {
      const int64_t to = output[output.rank() - input.rank() + i];
      if (input[i] != kUnknown && input[i] != 1 && to != kUnknown && to != input[i]) {
        throw invalid_argument("Incompatible shapes: ", input, " vs. ", output);
      }
    }
  }
  c.set_output(0, output);
}

void broadcast_to_gradient(GradientContext& c) { c.set(0, c.sum_to_input(c.gradient(), 0)); }

void broadcast_args_shape(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 1);
  const int64_t n0 = c.input(0).dim(0);
  const int64_t n1 = c.input(1).dim(0);
  c.set_output(0, PartialShape{n0 == kUnknown || n1 == kUnknown ? kUnknown : std::max(n0, n1)});
  if (c.value(0) == nullptr || c.value(1) == nullptr) return;
  const PartialShape result =
      ShapeContext::broadcast(extents_from_value(c, 0), extents_from_value(c, 1));
  PartialValue value;
  for (int64_t dim : result.dims()) {
    value.elements.push_back(dim == kUnknown ? std::nullopt : std::optional<int64_t>(dim));
  }
  c.set_value(0, std::move(value));
}

// --- Arithmetic on indices --------------------------------------------------------------------

void invert_permutation_shape(ShapeContext& c) {
  c.set_output(0, c.with_rank(0, 1));
  const std::optional<std::vector<int64_t>> x = known_vector(c, 0);
  if (!x) return;
  PartialValue value;
  value.elements.resize(x->size());
  for (size_t i = 0; i < x->size(); ++i) {
    const int64_t to = (*x)[i];
    if (to < 0 || to >= static_cast<int64_t>(x->size())) {
      throw invalid_argument(to, " is not between 0 and ", x->size());
    }
    if (value.elements[static_cast<size_t>(to)])
      throw invalid_argument(to, " is duplicated in the input.");
    value.elements[static_cast<size_t>(to)] = static_cast<int64_t>(i);
  }
  c.set_value(0, std::move(value));
}

// Input i of ConcatOffset against input 0: extents differ along `axis` alone.
void check_concatenated(const ShapeContext& c, const PartialValue& shape, int i, int64_t axis) {
  const auto& first = c.value(1)->elements;
  if (shape.elements.size() != first.size()) {
    throw invalid_argument("input ", i, " should contain ", first.size(), " elements, but got ",
                           shape.elements.size());
  }
  for (size_t k = 0; k < first.size(); ++k) {
    const auto& extent = shape.elements[k];
    if (!extent) continue;
    if (*extent < 0) {
      throw invalid_argument("input ", i, " holds the extent ", *extent,
                             "; extents are not negative");
    }
    if (static_cast<int64_t>(k) == axis || !first[k] || *first[k] == *extent) continue;
    throw invalid_argument("All dimensions except ", axis, " must match. Input ", i, " has extent ",
                           *extent, " in dimension ", k, ", input 0 has ", *first[k]);
  }
}

void concat_offset_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  const std::optional<int64_t> given = known_scalar(c, 0);
  const int n = c.num_inputs() - 1;
  for (int i = 0; i < n; ++i) c.set_output(i, c.with_rank(i + 1, 1));
  if (!given || c.value(1) == nullptr) return;
  const int rank = static_cast<int>(c.value(1)->elements.size());
  if (rank > kMaxRank)
    throw invalid_argument("shapes of rank ", rank, " are given, at most ", kMaxRank,
                           " is supported");
  const int64_t axis = ShapeContext::checked_axis(*given, rank, "concat_dim");
  std::optional<int64_t> offset = 0;
  for (int i = 0; i < n; ++i) {
    const PartialValue* shape = c.value(i + 1);
    if (shape != nullptr) check_concatenated(c, *shape, i, axis);
    PartialValue value;
    value.elements.assign(static_cast<size_t>(rank), 0);
    value.elements[static_cast<size_t>(axis)] = offset;
    c.set_value(i, std::move(value));
    const std::optional<int64_t> extent =
        shape == nullptr ? std::nullopt : shape->elements[static_cast<size_t>(axis)];
    offset =
        offset && extent ? std::optional<int64_t>(sum_of_dims(*offset, *extent)) : std::nullopt;
  }
}

void unravel_index_shape(ShapeContext& c) {
  const PartialShape dims = c.with_rank(1, 1);
  const PartialShape& indices = c.input(0);
  if (!indices.rank_known()) return;
  if (indices.rank() > 1)
    throw invalid_argument("The indices must be a scalar or a vector, got shape ", indices);
  c.set_output(0, indices.inserted(0, dims[0]));
}

void register_asking(OpRegistry& r) {
  r.op("Shape", HostAccess::kNone)
      .input("input: T")
      .anywhere("input")
      .output("output: out_type")
      .attr("T: type")
      .attr("out_type: {int32, int64} = int32")
      .shape(shape_shape)
      .not_differentiable()
      .any_device()
      .host("output")
      .doc("The shape of `input`, an integer vector. The value of `input` is not read.");
  r.op("ShapeN", HostAccess::kNone)
      .input("input: N * T")
      .anywhere("input")
      .output("output: N * out_type")
      .attr("N: int >= 1")
      .attr("T: type")
      .attr("out_type: {int32, int64} = int32")
      .shape(shape_shape)
      .not_differentiable()
      .any_device()
      .host("output")
      .doc("The shapes of several tensors: output i is the shape of input i.");
  r.op("Size", HostAccess::kNone)
      .input("input: T")
      .anywhere("input")
      .output("output: out_type")
      .attr("T: type")
      .attr("out_type: {int32, int64} = int32")
      .shape(size_shape)
      .not_differentiable()
      .any_device()
      .host("output")
      .doc("The number of elements of `input`, a scalar.");
  r.op("Rank", HostAccess::kNone)
      .input("input: T")
      .anywhere("input")
      .output("output: int32")
      .attr("T: type")
      .shape(rank_shape)
      .not_differentiable()
      .any_device()
      .host("output")
      .doc("The number of axes of `input`, a scalar.");
}

void register_views(OpRegistry& r) {
  r.op("Reshape", HostAccess::kNone)
      .input("tensor: T")
      .input("shape: Tshape")
      .output("output: T")
      .attr("T: type")
      .attr("Tshape: {int32, int64} = int32")
      .host("shape")
      .shape(reshape_shape)
      .view_of("tensor")
      .gradient(reshape_gradient)
      .doc(
          "The same elements, in the same order, under another shape.\n\n"
          "shape: the extents; one of them may be -1 and is then inferred.\n"
          "Errors: InvalidArgument when the number of elements differs.");
  r.op("ExpandDims", HostAccess::kNone)
      .input("input: T")
      .input("dim: Tdim")
      .output("output: T")
      .attr("T: type")
      .attr("Tdim: {int32, int64} = int32")
      .host("dim")
      .shape(expand_dims_shape)
      .view_of("input")
      .gradient(reshape_gradient)
      .doc("A new axis of extent 1 at place `dim` (negative: counted from the end of the result).");
  r.op("Squeeze", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: type")
      .attr("squeeze_dims: list(int) >= 0 = []")
      .shape(squeeze_shape)
      .view_of("input")
      .gradient(reshape_gradient)
      .doc("Drops axes of extent 1: those in `squeeze_dims`, or all of them when it is empty.");
}

void register_shape_arithmetic(OpRegistry& r) {
  r.op("BroadcastTo", HostAccess::kNone)
      .input("input: T")
      .input("shape: Tidx")
      .output("output: T")
      .attr("T: type")
      .attr("Tidx: {int32, int64} = int32")
      .host("shape")
      .shape(broadcast_to_shape)
      .gradient(broadcast_to_gradient)
      .doc(
          "`input` repeated along axes of extent 1, and along new leading axes, to fill `shape` "
          "(NumPy's broadcasting).");
  r.op("BroadcastArgs", HostAccess::kNone)
      .input("s0: T")
      .input("s1: T")
      .output("r0: T")
      .attr("T: {int32, int64} = int32")
      .host("s0")
      .host("s1")
      .shape(broadcast_args_shape)
      .computes_sizes()
      .not_differentiable()
      .doc("The shape to which shapes `s0` and `s1` broadcast together.");
  r.op("InvertPermutation", HostAccess::kNone)
      .input("x: T")
      .output("y: T")
      .attr("T: {int32, int64} = int32")
      .shape(invert_permutation_shape)
      .not_differentiable()
      .doc(
          "The inverse of a permutation of 0 ... n-1: y[x[i]] = i.\n\nErrors: InvalidArgument when "
          "`x` is no permutation.");
  r.op("ConcatOffset", HostAccess::kNone)
      .input("concat_dim: int32")
      .input("shape: N * int32")
      .output("offset: N * int32")
      .attr("N: int >= 2")
      .host("concat_dim")
      .host("shape")
      .shape(concat_offset_shape)
      .not_differentiable()
      .doc(
          "Where each of N tensors of the given shapes begins in their concatenation along "
          "`concat_dim`.");
  r.op("UnravelIndex", HostAccess::kNone)
      .input("indices: Tidx")
      .input("dims: Tidx")
      .output("output: Tidx")
      .attr("Tidx: {int32, int64} = int32")
      .shape(unravel_index_shape)
      .not_differentiable()
      .doc(
          "Coordinates of flat indices in an array of shape `dims`: output[k, i] is coordinate k "
          "of indices[i].\n\n"
          "Errors: InvalidArgument for an index outside the array.");
}

}  // namespace

void register_shape_ops(OpRegistry& r) {
  register_asking(r);
  register_views(r);
  register_shape_arithmetic(r);
  r.finish("shape");
}

}  // namespace treenail
