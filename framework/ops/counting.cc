// SPDX-License-Identifier: Apache-2.0
// Ops that sort elements into bins and count them, or pick one by its rank.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void bincount_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  const std::optional<int64_t> size = known_scalar(c, 1);
  if (size && *size < 0) throw invalid_argument("size must be >= 0, got ", *size);
  const PartialShape& values = c.input(0);
  const PartialShape& weights = c.input(2);
  const bool without_weights = weights.rank() == 1 && weights[0] == 0;
  if (!without_weights && !weights.compatible(values)) {
    throw invalid_argument("weights must have the shape of arr, ", values,
                           ", or be empty: [0], got ", weights);
  }
  c.set_output(0, PartialShape{size.value_or(kUnknown)});
}

void histogram_shape(ShapeContext& c) {
  const PartialShape range = c.with_rank(1, 1);
  if (range[0] != kUnknown && range[0] != 2)
    throw invalid_argument("value_range must have 2 elements, got ", range[0]);
  c.with_rank(2, 0);
  const std::optional<int64_t> bins = known_scalar(c, 2);
  if (bins && *bins <= 0) throw invalid_argument("nbins must be positive, got ", *bins);
  c.set_output(0, PartialShape{bins.value_or(kUnknown)});
}

void bucketize_shape(ShapeContext& c) {
  const auto& boundaries = c.op().get<std::vector<double>>("boundaries");
  const auto at = std::is_sorted_until(boundaries.begin(), boundaries.end(),
                                       [](double next, double last) { return !(last <= next); });
  if (at != boundaries.end()) {
    throw invalid_argument("Expected sorted boundaries: ", *at, " follows ", *(at - 1));
  }
  c.set_output(0, c.input(0));
}

void nth_element_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  const std::optional<int64_t> n = known_scalar(c, 1);
  if (n && *n < 0) throw invalid_argument("n must be >= 0, got ", *n);
  if (!input.rank_known()) return;
  const int64_t columns = input[input.rank() - 1];
  if (n && columns != kUnknown && *n >= columns)
    throw invalid_argument("input must have more than n = ", *n, " columns, got ", columns);
  c.set_output(0, input.sub(0, input.rank() - 1));
}

// Elements equal to the one chosen share its gradient evenly.
void nth_element_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value last = int_scalar(e, -1);
  const DType dtype = c.input_dtype(0), wide = widened_type(dtype);
  const Value chosen = e.call("Equal", {e.call("ExpandDims", {c.output(0), last}), c.input(0)});
  const Value ones = e.cast(chosen, wide);
  const Value sharers = e.call("ExpandDims", {e.call("Sum", {ones, last}), last});
  const Value share = e.cast(e.div(ones, sharers), dtype);
  c.set(0, e.mul(share, e.call("ExpandDims", {c.gradient(), last})));
}

}  // namespace

void register_counting_ops(OpRegistry& r) {
  r.op("Bincount", HostAccess::kNone)
      .input("arr: int32")
      .input("size: int32")
      .input("weights: T")
      .output("bins: T")
      .attr("T: {int32, int64, float, double}")
      .host("size")
      .shape(bincount_shape)
      .not_differentiable()
      .doc(
          "How often each of 0 … size-1 occurs in `arr`: a vector of length `size`. With weights, "
          "the sum of the weights of its occurrences.\n\n"
          "weights: of arr's shape, or of shape [0] for none. Values of `size` or more are left "
          "out.\nErrors: InvalidArgument for a negative value.");
  r.op("HistogramFixedWidth", HostAccess::kNone)
      .input("values: T")
      .input("value_range: T")
      .input("nbins: int32")
      .output("out: dtype")
      .attr("T: {int32, int64, float, double}")
      .attr("dtype: {int32, int64} = int32")
      .host("nbins")
      .shape(histogram_shape)
      .not_differentiable()
      .doc(
          "How many values fall into each of `nbins` bins of the same width between value_range[0] "
          "and value_range[1].\n\n"
          "Values below the range count in the first bin, those above it in the last; NaN counts "
          "in none.\nErrors: InvalidArgument unless value_range[0] < value_range[1], both finite.");
  r.op("Bucketize", HostAccess::kNone)
      .input("input: T")
      .output("output: int32")
      .attr("T: {int32, int64, float, double}")
      .attr("boundaries: list(float)")
      .shape(bucketize_shape)
      .not_differentiable()
      .doc(
          "For each element the number of `boundaries` that it reaches: boundaries [0, 10] make "
          "(-inf, 0) 0, [0, 10) 1 and [10, inf) 2; NaN reaches all.\n\n"
          "Errors: InvalidArgument unless boundaries ascend.");
  r.op("NthElement", HostAccess::kNone)
      .input("input: T")
      .input("n: int32")
      .output("values: T")
      .attr("reverse: bool = false")
      .attr("T: realnumbertype")
      .host("n")
      .shape(nth_element_shape)
      .gradient(nth_element_gradient, {"input", "values"})
      .doc(
          "The n-th smallest element along the last axis, counted from 0; with `reverse` the n-th "
          "largest. NaN is larger than any number.\n\n"
          "Errors: InvalidArgument when the axis has no n-th element.");
  r.finish("counting");
}

}  // namespace treenail
