// SPDX-License-Identifier: Apache-2.0
// Ops that compare elements with each other: the largest ones, those that are true, those that are
// different.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void top_k_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  const std::optional<int64_t> k = known_scalar(c, 1);
  if (k && *k < 0) throw invalid_argument("Need k >= 0, got ", *k);
  if (!input.rank_known()) return;
  const int last = input.rank() - 1;
  if (k && input[last] != kUnknown && *k > input[last]) {
    throw invalid_argument("input must have at least k columns. Had ", input[last], ", needed ",
                           *k);
  }
  check_positions_fit(c.op().output_type(1), input[last], "the last axis of input");
  for (int i = 0; i < 2; ++i) c.set_output(i, input.with_dim(last, k.value_or(kUnknown)));
}

void top_k_gradient(GradientContext& c) {
  if (!c.has_gradient(0)) return;
  Emitter& e = c.e;
  const AxisGroup groups[] = {{0, -1}, {-1, kToEnd}};
  const Value shape = c.input_shape_value(0);
  const Value sizes = grouped_shape(e, c.input_shape(0), shape, groups);  // [rows, columns]
  const DType wide = DType::kInt64;
  const Value rows = element_of(e, sizes, 0);
  const Value columns = element_of(e, sizes, 1);
  const Value numbers =
      e.mul(e.call("Range", {int_scalar(e, 0, wide), rows, int_scalar(e, 1, wide)}), columns);
  const Value k = element_of(e, e.shape_of(c.output(1)), -1);
  const std::vector<Value> extents = {rows, k};
  const Value indices = e.cast(e.reshape(c.output(1), e.call("Pack", extents)), wide);
  const Value flat = e.reshape(e.add(indices, e.call("ExpandDims", {numbers, int_scalar(e, 1)})),
                               int_vector(e, {-1, 1}));
  const Value size = e.reshape(e.mul(rows, columns), int_vector(e, {1}));
  c.set(0, e.reshape(e.call("ScatterNd", {flat, flattened(e, c.gradient(0)), size}), shape));
}

void in_top_k_shape(ShapeContext& c) {
  const PartialShape predictions = c.with_rank(0, 2);
  const PartialShape targets = c.with_rank(1, 1);
  c.with_rank(2, 0);
  const int64_t batch = ShapeContext::merge_dim(
      predictions[0], targets[0], "First dimension of predictions and length of targets");
  c.set_output(0, PartialShape{batch});
}

void where_shape(ShapeContext& c) {
  const PartialShape& condition = c.input(0);
  c.set_output(0, PartialShape{kUnknown, condition.rank_known() ? condition.rank() : kUnknown});
}

void unique_shape(ShapeContext& c) {
  const PartialShape x = c.with_rank(0, 1);
  const bool counted = c.num_outputs() > 2;  // a count may be one more than the last position
  check_positions_fit(c.op().output_type(1), counted && x[0] != kUnknown ? x[0] + 1 : x[0], "x");
  c.set_output(0, PartialShape{kUnknown});
  c.set_output(1, x);
  if (c.num_outputs() > 2) c.set_output(2, PartialShape{kUnknown});
}

void list_diff_shape(ShapeContext& c) {
  check_positions_fit(c.op().output_type(1), c.with_rank(0, 1)[0], "x");
  c.with_rank(1, 1);
  c.set_output(0, PartialShape{kUnknown});
  c.set_output(1, PartialShape{kUnknown});
}

}  // namespace

void register_ordering_ops(OpRegistry& r) {
  r.op("TopK", HostAccess::kNone)
      .input("input: T")
      .input("k: Tk")
      .output("values: T")
      .output("indices: int32")
      .attr("sorted: bool = true")
      .attr("T: realnumbertype")
      .attr("Tk: {int32, int64} = int32")
      .host("k")
      .shape(top_k_shape)
      .gradient(top_k_gradient, {"indices"})
      .doc(
          "The k largest elements along the last axis and their indices there.\n\n"
          "The larger comes first, of equal ones that with the lower index; NaN counts as larger "
          "than any number. sorted: false "
          "allows any order.\nErrors: InvalidArgument when the axis has fewer than k elements.");
  r.op("InTopK", HostAccess::kNone)
      .input("predictions: float")
      .input("targets: T")
      .input("k: T")
      .output("precision: bool")
      .attr("T: {int32, int64} = int32")
      .host("k")
      .shape(in_top_k_shape)
      .not_differentiable()
      .doc(
          "Whether the target's prediction is among the k largest of its row: fewer than k are "
          "larger.\n\n"
          "predictions: [batch, classes]; targets: [batch]. False for a target out of range and "
          "for a row that is not finite.");
  r.op("Where", HostAccess::kNone)
      .input("input: T")
      .output("index: int64")
      .attr("T: {numbertype, bool} = bool")
      .data_dependent_shape()
      .shape(where_shape)
      .not_differentiable()
      .doc(
          "The coordinates of the elements that are not zero (false), in row-major order: an int64 "
          "matrix [count, rank].");
  r.op("Unique", HostAccess::kNone)
      .input("x: T")
      .output("y: T")
      .output("idx: out_idx")
      .attr("T: type")
      .attr("out_idx: {int32, int64} = int32")
      .data_dependent_shape()
      .shape(unique_shape)
      .not_differentiable()
      .doc(
          "The different elements of a vector in the order of their first occurrence, and for each "
          "element of `x` its place "
          "there: x[i] = y[idx[i]]. Every NaN is different.");
  r.op("UniqueWithCounts", HostAccess::kNone)
      .input("x: T")
      .output("y: T")
      .output("idx: out_idx")
      .output("count: out_idx")
      .attr("T: type")
      .attr("out_idx: {int32, int64} = int32")
      .data_dependent_shape()
      .shape(unique_shape)
      .not_differentiable()
      .doc("As Unique, and how often each different element occurs.");
  r.op("ListDiff", HostAccess::kNone)
      .input("x: T")
      .input("y: T")
      .output("out: T")
      .output("idx: out_idx")
      .attr("T: type")
      .attr("out_idx: {int32, int64} = int32")
      .data_dependent_shape()
      .shape(list_diff_shape)
      .not_differentiable()
      .doc(
          "The elements of vector x that are not in vector y, in their order, repeated ones too, "
          "and their places: out[i] = x[idx[i]]. NaN is in no vector.");
  r.finish("ordering");
}

}  // namespace treenail
