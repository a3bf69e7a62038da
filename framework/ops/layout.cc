// SPDX-License-Identifier: Apache-2.0
// Elements in other places: permuted axes, borders, repetition, reversal. Every op here is linear;
// its gradient moves back.
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

// --- Transpose --------------------------------------------------------------------------------

void transpose_shape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  const int64_t length = c.with_rank(1, 1)[0];
  if (x.rank_known() && length != kUnknown && length != x.rank()) {
    throw invalid_argument("transpose expects a vector of size ", x.rank(),
                           ". But input(1) is a vector of size ", length);
  }
  const int64_t rank = x.rank_known() ? x.rank() : length;
  if (rank == kUnknown) return;
  if (rank > kMaxRank)
    throw invalid_argument("perm has ", rank, " elements, at most ", kMaxRank,
                           " axes are supported");
  const std::optional<std::vector<int64_t>> perm = known_vector(c, 1);
  if (!perm) {
    c.set_output(0, PartialShape::unknown_with_rank(static_cast<int>(rank)));
    return;
  }
  std::vector<int64_t> dims;
  bool seen[kMaxRank] = {};
  for (int64_t given : *perm) {
    const int64_t axis = ShapeContext::checked_axis(given, static_cast<int>(rank), "perm");
    if (seen[axis])
      throw invalid_argument("perm is no permutation: axis ", axis, " is named twice");
    seen[axis] = true;
    dims.push_back(x.dim(static_cast<int>(axis)));
  }
  c.set_output(0, PartialShape(std::span<const int64_t>(dims)));
}

void transpose_gradient(GradientContext& c) {
  // Negative axes count from the end; InvertPermutation takes no such.
  const Tensor* perm = c.input_constant(1);
  if (perm != nullptr) {
    int64_t storage[kMaxRank];
    const std::span<const int64_t> given = as_int64(*perm, storage);
    std::vector<int64_t> inverse(given.size());
    const int64_t rank = static_cast<int64_t>(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      inverse[static_cast<size_t>(given[i] < 0 ? given[i] + rank : given[i])] =
          static_cast<int64_t>(i);
    }
    c.set(0, c.e.call(c.op().name(), {c.gradient(), c.e.const_ints(DType::kInt32, inverse)}));
    return;
  }
  const Value rank = c.e.call("Size", {c.input(1)}, {{"out_type", c.input_dtype(1)}});
  const Value axes = c.e.call("FloorMod", {c.input(1), rank});
  c.set(0, c.e.call(c.op().name(), {c.gradient(), c.e.call("InvertPermutation", {axes})}));
}

// --- Pad --------------------------------------------------------------------------------------

// The shape with paddings[i] = (before, after) around axis i; paddings are input 1. With `sign` -1
// they are taken away.
PartialShape padded_shape(ShapeContext& c, int sign) {
  const PartialShape paddings = c.with_rank(1, 2);
  const PartialShape& input = c.input(0);
  if (paddings[1] != kUnknown && paddings[1] != 2) {
    throw invalid_argument("paddings must be a matrix with 2 columns: ", paddings);
  }
  if (input.rank_known() && paddings[0] != kUnknown && paddings[0] != input.rank()) {
    throw invalid_argument(
        "The first dimension of paddings must be the rank of inputs: paddings has shape ", paddings,
        ", input has shape ", input);
  }
  const int64_t rank = input.rank_known() ? input.rank() : paddings[0];
  if (rank == kUnknown) return PartialShape();
  if (rank > kMaxRank)
    throw invalid_argument("paddings has ", rank, " rows, at most ", kMaxRank,
                           " axes are supported");
  const Tensor* known = c.constant(1);
  if (known == nullptr) return PartialShape::unknown_with_rank(static_cast<int>(rank));
  std::vector<int64_t> dims;
  for (int i = 0; i < static_cast<int>(rank); ++i) {
    const auto at = [&](int k) -> int64_t {
      return known->dtype() == DType::kInt32 ? known->data<int32_t>()[2 * i + k]
                                             : known->data<int64_t>()[2 * i + k];
    };
    if (at(0) < 0 || at(1) < 0)
      throw invalid_argument("Paddings must be non-negative: ", at(0), " ", at(1));
    const int64_t border = sum_of_dims(at(0), at(1));
    if (sign > 0 || input.dim(i) == kUnknown) {
      dims.push_back(sum_of_dims(input.dim(i), border));
      continue;
    }
    if (border > input.dim(i)) {
      throw invalid_argument("paddings ", at(0), " and ", at(1), " of axis ", i,
                             " exceed its extent ", input.dim(i));
    }
    dims.push_back(input.dim(i) - border);
  }
  return PartialShape(std::span<const int64_t>(dims));
}

void pad_shape(ShapeContext& c) {
  c.with_rank(2, 0);
  c.set_output(0, padded_shape(c, 1));
}

// paddings[:, 0], a vector.
Value borders_before(Emitter& e, Value paddings) {
  return e.call("StridedSlice",
                {paddings, int_vector(e, {0, 0}), int_vector(e, {0, 1}), int_vector(e, {1, 1})},
                {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
}

void pad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value gradient = c.gradient();
  const DType index = index_dtype(c.input_dtype(1), c.input_shape(0));
  const Value before = borders_before(e, e.cast(c.input(1), index));
  const Value inner = e.call("Slice", {gradient, before, c.input_shape_value(0, index)});
  if (c.needed(0)) c.set(0, inner);
  if (c.needed(2)) c.set(2, e.sub(sum_of_all(e, gradient), sum_of_all(e, inner)));
}

void check_mirror(const ShapeContext& c, const PartialShape& inner) {
  const Tensor* known = c.constant(1);
  if (known == nullptr) return;
  const int64_t offset = c.op().get_string("mode") == "REFLECT" ? 1 : 0;
  for (int i = 0; i < inner.rank(); ++i) {
    if (inner[i] == kUnknown) continue;
    for (int k = 0; k < 2; ++k) {
      const int64_t border = known->dtype() == DType::kInt32 ? known->data<int32_t>()[2 * i + k]
                                                             : known->data<int64_t>()[2 * i + k];
      if (border <= inner[i] - offset || border == 0) continue;
      throw invalid_argument("paddings must be no greater than the dimension size",
                             offset == 1 ? " less 1" : "", ": ", border, " greater than ",
                             inner[i] - offset, " along axis ", i);
    }
  }
}

void mirror_pad_shape(ShapeContext& c) {
  const PartialShape output = padded_shape(c, 1);
  if (c.input(0).rank_known()) check_mirror(c, c.input(0));
  c.set_output(0, output);
}

void mirror_pad_grad_shape(ShapeContext& c) {
  const PartialShape output = padded_shape(c, -1);
  if (output.rank_known()) check_mirror(c, output);
  c.set_output(0, output);
}

void mirror_pad_gradient(GradientContext& c) {
  c.set(0, c.e.call("MirrorPadGrad", {c.gradient(), c.input(1)},
                    {{"mode", c.op().get_string("mode")}}));
}
void mirror_pad_grad_gradient(GradientContext& c) {
  c.set(0,
        c.e.call("MirrorPad", {c.gradient(), c.input(1)}, {{"mode", c.op().get_string("mode")}}));
}

// --- Tile -------------------------------------------------------------------------------------

void tile_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const int64_t length = c.with_rank(1, 1)[0];
  if (input.rank_known() && length != kUnknown && length != input.rank()) {
    throw invalid_argument("Expected multiples argument to be a vector of length ", input.rank(),
                           " but got length ", length);
  }
  const int64_t rank = input.rank_known() ? input.rank() : length;
  if (rank == kUnknown) return;
  if (rank > kMaxRank)
    throw invalid_argument("multiples has ", rank, " elements, at most ", kMaxRank,
                           " axes are supported");
  const PartialValue* multiples = c.value(1);
  std::vector<int64_t> dims;
  for (int i = 0; i < static_cast<int>(rank); ++i) {
    const std::optional<int64_t> times =
        multiples ? multiples->elements[static_cast<size_t>(i)] : std::nullopt;
    if (times && *times < 0)
      throw invalid_argument("Expected multiples[", i, "] >= 0, but got ", *times);
    const int64_t factors[] = {input.dim(i), times.value_or(kUnknown)};
    dims.push_back(product_of(factors));
  }
  c.set_output(0, PartialShape(std::span<const int64_t>(dims)));
}

// Sums over the repetitions of one axis after the other: [before, times, extent * after] has rank 3
// whatever the input's rank.
Value sum_repeated_axis(Emitter& e, Value gradient, Value shape, Value multiples, int axis,
                        int rank) {
  const Value before = e.call(
      "Prod",
      {e.call("Slice", {shape, int_vector(e, {0}), int_vector(e, {axis})}), int_vector(e, {0})});
  const Value rest = e.call(
      "Prod",
      {e.call("Slice", {shape, int_vector(e, {axis}), int_vector(e, {-1})}), int_vector(e, {0})});
  Value after = rest;
  if (axis + 1 < rank) {  // later axes are still repeated
    const Value later =
        e.call("Slice", {multiples, int_vector(e, {axis + 1}), int_vector(e, {-1})});
    after = e.mul(rest, e.call("Prod", {later, int_vector(e, {0})}));
  }
  const std::vector<Value> extents = {before, element_of(e, multiples, axis), after};
  return e.call("Sum", {e.reshape(gradient, e.call("Pack", extents)), int_vector(e, {1})});
}

void tile_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const PartialShape input = c.input_shape(0);
  const Tensor* known = c.input_constant(1);
  Value gradient = c.gradient();
  const DType index = index_dtype(c.input_dtype(1), input);
  const Value shape = c.input_shape_value(0, index);
  const Value multiples = e.cast(c.input(1), index);
  // Where the input's rank is not known, the length of multiples mostly is.
  const int rank =
      input.rank_known() ? input.rank() : static_cast<int>(c.e.shape(c.input(1)).dim(0));
  if (rank < 0) {
    // TensorFlow's way, for ranks up to 4: [m0, d0, m1, d1, ...] summed over the even axes.
    const std::vector<Value> both = {multiples, shape};
    const Value pairs = e.call("Pack", both, {{"axis", 1}});
    const Value split = e.reshape(pairs, int_vector(e, {-1}));
    const Value axes =
        e.call("Range", {int_scalar(e, 0), e.call("Size", {split}), int_scalar(e, 2)});
    c.set(0, e.call("Sum", {e.reshape(gradient, split), axes}));
    return;
  }
  int64_t storage[kMaxRank];
  std::span<const int64_t> times;
  if (known != nullptr) times = as_int64(*known, storage);
  bool summed = false;
  for (int axis = 0; axis < rank; ++axis) {
    if (!times.empty() && times[static_cast<size_t>(axis)] == 1) continue;
    gradient = sum_repeated_axis(e, gradient, shape, multiples, axis, rank);
    summed = true;
  }
  c.set(0, summed ? e.reshape(gradient, shape) : gradient);
}

// --- Reversal and rotation --------------------------------------------------------------------

void reverse_shape(ShapeContext& c) {
  c.with_rank(1, 1);
  const PartialShape& x = c.input(0);
  c.set_output(0, x);
  const std::optional<std::vector<int64_t>> axes = known_vector(c, 1);
  if (!axes || !x.rank_known()) return;
  bool seen[kMaxRank] = {};
  for (int64_t given : *axes) {
    const int64_t axis = ShapeContext::checked_axis(given, x.rank());
    if (seen[axis]) throw invalid_argument("axis ", axis, " specified more than once.");
    seen[axis] = true;
  }
}

void reverse_gradient(GradientContext& c) {
  c.set(0, c.e.call("Reverse", {c.gradient(), c.input(1)}));
}

void reverse_sequence_shape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  const PartialShape lengths = c.with_rank(1, 1);
  c.set_output(0, x);
  if (!x.rank_known()) return;
  const int seq =
      static_cast<int>(ShapeContext::checked_axis(c.op().get_int("seq_dim"), x.rank(), "seq_dim"));
  const int batch = static_cast<int>(
      ShapeContext::checked_axis(c.op().get_int("batch_dim"), x.rank(), "batch_dim"));
  if (seq == batch) throw invalid_argument("batch_dim == seq_dim == ", seq);
  c.set_output(0,
               x.with_dim(batch, ShapeContext::merge_dim(
                                     x.dim(batch), lengths[0],
                                     "the batch extent of input and the length of seq_lengths")));
}

void reverse_sequence_gradient(GradientContext& c) {
  c.set(0, c.e.call("ReverseSequence", {c.gradient(), c.input(1)},
                    {{"seq_dim", c.op().get_int("seq_dim")},
                     {"batch_dim", c.op().get_int("batch_dim")}}));
}

void roll_shape(ShapeContext& c) {
  const PartialShape x = c.with_rank_at_least(0, 1);
  c.set_output(0, x);
  for (int i = 1; i <= 2; ++i) {
    if (c.input(i).rank_known() && c.input(i).rank() > 1) {
      throw invalid_argument(c.op().input_name(i), " must be a scalar or a 1-D vector, got shape ",
                             c.input(i));
    }
  }
  if (!c.input(1).compatible(c.input(2))) {
    throw invalid_argument("shift and axis must have the same size, got shapes ", c.input(1),
                           " and ", c.input(2));
  }
  const std::optional<std::vector<int64_t>> axes = known_vector(c, 2);
  if (!axes || !x.rank_known()) return;
  for (int64_t axis : *axes) ShapeContext::checked_axis(axis, x.rank());
}

void roll_gradient(GradientContext& c) {
  c.set(0, c.e.call("Roll", {c.gradient(), c.e.neg(c.input(1)), c.input(2)}));
}

void register_permuting(OpRegistry& r) {
  for (const char* name : {"Transpose", "ConjugateTranspose"}) {
    const bool conjugate = std::string_view(name) == "ConjugateTranspose";
    r.op(name, HostAccess::kNone)
        .input("x: T")
        .input("perm: Tperm")
        .output("y: T")
        .attr("T: type")
        .attr("Tperm: {int32, int64} = int32")
        .host("perm")
        .shape(transpose_shape)
        .gradient(transpose_gradient, {"perm"})
        .doc(concat("The axes of `x` in another order",
                    conjugate ? ", complex numbers conjugated" : "",
                    ": axis i of the result is axis perm[i] of x.\n\nErrors: InvalidArgument when "
                    "perm is no permutation."));
  }
}

void register_borders(OpRegistry& r) {
  r.op("Pad", HostAccess::kNone)
      .input("input: T")
      .input("paddings: Tpaddings")
      .input("constant_values: T")
      .output("output: T")
      .attr("T: type")
      .attr("Tpaddings: {int32, int64} = int32")
      .host("paddings")
      .shape(pad_shape)
      .gradient(pad_gradient, {"paddings"})
      .doc(
          "`input` with paddings[i, 0] elements before and paddings[i, 1] after it along axis i, "
          "all the scalar `constant_values`.");
  r.op("MirrorPad", HostAccess::kNone)
      .input("input: T")
      .input("paddings: Tpaddings")
      .output("output: T")
      .attr("T: type")
      .attr("Tpaddings: {int32, int64} = int32")
      .attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .host("paddings")
      .shape(mirror_pad_shape)
      .gradient(mirror_pad_gradient, {"paddings"})
      .doc(
          "`input` with borders that mirror it.\n\nmode: REFLECT leaves out the edge elements (a b "
          "c: c b | a b c | b a), SYMMETRIC "
          "repeats them (b a | a b c | c b). Errors: InvalidArgument when a border is longer than "
          "what it mirrors.");
  r.op("MirrorPadGrad", HostAccess::kNone)
      .input("input: T")
      .input("paddings: Tpaddings")
      .output("output: T")
      .attr("T: numbertype")
      .attr("Tpaddings: {int32, int64} = int32")
      .attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .host("paddings")
      .shape(mirror_pad_grad_shape)
      .gradient(mirror_pad_grad_gradient, {"paddings"})
      .doc(
          "The adjoint of MirrorPad: the borders of `input` folded back and added to what they "
          "mirror.");
}

void register_moves(OpRegistry& r) {
  r.op("Tile", HostAccess::kNone)
      .input("input: T")
      .input("multiples: Tmultiples")
      .output("output: T")
      .attr("T: type")
      .attr("Tmultiples: {int32, int64} = int32")
      .host("multiples")
      .shape(tile_shape)
      .gradient(tile_gradient, {"multiples"})
      .doc("`input` repeated multiples[i] times along axis i.");
  r.op("Reverse", HostAccess::kNone)
      .input("tensor: T")
      .input("axis: Tidx")
      .output("output: T")
      .attr("T: type")
      .attr("Tidx: {int32, int64} = int32")
      .host("axis")
      .shape(reverse_shape)
      .gradient(reverse_gradient, {"axis"})
      .doc(
          "`tensor` with the order of elements reversed along each of the axes in `axis`, a "
          "vector.");
  r.op("ReverseSequence", HostAccess::kNone)
      .input("input: T")
      .input("seq_lengths: Tlen")
      .output("output: T")
      .attr("seq_dim: int")
      .attr("batch_dim: int = 0")
      .attr("T: type")
      .attr("Tlen: {int32, int64} = int64")
      .shape(reverse_sequence_shape)
      .gradient(reverse_sequence_gradient, {"seq_lengths"})
      .doc(
          "For each entry i along `batch_dim`, the first seq_lengths[i] elements along `seq_dim` "
          "reversed; the rest stays.\n\n"
          "Errors: InvalidArgument for a length outside [0, extent of seq_dim].");
  r.op("Roll", HostAccess::kNone)
      .input("input: T")
      .input("shift: Tshift")
      .input("axis: Taxis")
      .output("output: T")
      .attr("T: type")
      .attr("Tshift: {int32, int64}")
      .attr("Taxis: {int32, int64}")
      .host("shift")
      .host("axis")
      .shape(roll_shape)
      .gradient(roll_gradient, {"shift", "axis"})
      .doc(
          "`input` moved by shift[k] along axis[k]; what leaves at one end enters at the other. "
          "Repeated axes add their shifts.");
}

}  // namespace

void register_layout_ops(OpRegistry& r) {
  register_permuting(r);
  register_borders(r);
  register_moves(r);
  r.finish("layout");
}

}  // namespace treenail
