// SPDX-License-Identifier: Apache-2.0
// Reductions over rows that belong to the same segment: SegmentX for ids that do not decrease,
// SparseSegmentX the same on rows chosen by indices, UnsortedSegmentX for ids in any order with a
// stated number of segments. The gradients of both
// kinds are the same but for ids below 0, which are left out.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

constexpr char kNumbers[] = "T: numbertype";
constexpr char kReals[] = "T: realnumbertype";

void segment_shape(ShapeContext& c) {
  const PartialShape data = c.with_rank_at_least(0, 1);
  const PartialShape ids = c.with_rank(1, 1);
  if (!data.rank_known()) return;
  ShapeContext::merge_dim(data[0], ids[0],
                          "the first extent of data and the length of segment_ids");
  c.set_output(0, data.with_dim(0, kUnknown));
}

void sparse_segment_shape(ShapeContext& c) {
  const PartialShape data = c.with_rank_at_least(0, 1);
  ShapeContext::merge_dim(c.with_rank(1, 1)[0], c.with_rank(2, 1)[0],
                          "the lengths of indices and segment_ids");
  if (data.rank_known()) c.set_output(0, data.with_dim(0, kUnknown));
}

void unsorted_segment_shape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  c.with_rank(2, 0);
  const std::optional<int64_t> segments = known_scalar(c, 2);
  if (segments && *segments < 0)
    throw invalid_argument("num_segments must be >= 0, got ", *segments);
  if (!data.rank_known() || !ids.rank_known()) return;
  if (ids.rank() > data.rank() || !data.sub(0, ids.rank()).compatible(ids)) {
    throw invalid_argument("data.shape = ", data, " does not start with segment_ids.shape = ", ids);
  }
  c.set_output(0, data.sub(ids.rank(), data.rank()).inserted(0, segments.value_or(kUnknown)));
}

// --- Gradients --------------------------------------------------------------------------------
// A value of the result's shape is spread back over the rows it was made of; `Rows` does that for
// either kind of op.

class Rows {
 public:
  explicit Rows(GradientContext& c)
      : c_(c), e(c.e), ids_(c.input(1)), sorted_(c.op().num_inputs() == 2) {
    if (sorted_) return;
    kept_ = e.call("GreaterEqual", {ids_, e.const_scalar(e.dtype(ids_), 0)});
  }

  // Row i of the result is row ids[i] of `value`, zero where the id is negative: that is a further
  // row, so that there is one to take even where there are no segments.
  Value spread(Value value) {
    const Value axis = int_scalar(e, 0);
    if (sorted_) return e.call("Gather", {value, ids_, axis});
    const Value shape = e.shape_of(value);
    const Value further = e.call("Slice", {shape, int_vector(e, {1}), int_vector(e, {-1})});
    const Value row = e.call("Concat", {int_vector(e, {1}, DType::kInt64), further, axis});
    const Value zeros = e.call("Fill", {row, e.const_scalar(e.dtype(value), 0)});
    const Value last = e.cast(element_of(e, shape, 0), e.dtype(ids_));
    const Value places = e.call("Select", {kept_, ids_, last});
    return e.call("Gather", {e.call("Concat", {value, zeros, axis}), places, axis});
  }

  // Sums of `data`, or its products, by segment.
  Value reduce(const char* what, Value data) {
    if (sorted_) return e.call(concat("Segment", what), {data, ids_});
    return e.call(concat("UnsortedSegment", what), {data, ids_, segments()});
  }

 private:
  // The number of segments, as the shape of the result has it.
  Value segments() { return element_of(e, e.shape_of(c_.gradient()), 0); }

  GradientContext& c_;
  Emitter& e;
  Value ids_;
  bool sorted_;
  Value kept_;  // which ids are not negative
};

void sum_gradient(GradientContext& c) { c.set(0, Rows(c).spread(c.gradient())); }

// `divisor` of the number of rows of a segment, which has as many further axes as the result.
Value divided_by_counts(GradientContext& c, Value ids, const char* divisor) {
  Emitter& e = c.e;
  const Value gradient = c.gradient();
  const DType wide = widened_type(c.input_dtype(0));  // half ends counting at 2048
  const Value ones = e.call("Fill", {e.shape_of(ids), e.const_scalar(wide, 1)});
  Value counts = e.call("SegmentSum", {ones, ids});
  // A segment without rows passes nothing on; its 0 must not divide.
  counts = e.call("Maximum", {counts, e.const_scalar(wide, 1)});
  if (divisor != nullptr) counts = e.call(divisor, {counts});
  const Value rank = e.call("Rank", {gradient});
  const Value further = e.sub(rank, int_scalar(e, 1));
  const Value one = int_scalar(e, 1, DType::kInt64);
  const Value units = e.call("Fill", {e.reshape(further, int_vector(e, {1})), one});
  const Value shape = e.call("Concat", {e.shape_of(counts), units, int_scalar(e, 0)});
  return e.cast(e.div(e.widened(gradient), e.reshape(counts, shape)), c.input_dtype(0));
}

void mean_gradient(GradientContext& c) {
  c.set(0, Rows(c).spread(divided_by_counts(c, c.input(1), nullptr)));
}

// Elements equal to the extremum of their segment share its gradient evenly.
void extremum_gradient(GradientContext& c) {
  Emitter& e = c.e;
  Rows rows(c);
  const Value data = c.input(0);
  const DType dtype = c.input_dtype(0);
  const Value chosen = e.call("Equal", {data, rows.spread(c.output(0))});
  const Value sharers = rows.reduce("Sum", e.cast(chosen, widened_type(dtype)));
  const Value share = e.cast(e.div(e.widened(c.gradient()), sharers), dtype);
  c.set(0, e.call("Select", {chosen, rows.spread(share), e.const_scalar(dtype, 0)}));
}

// d prod / d x is prod / x, or the product of the others where x itself is the segment's only zero.
void product_gradient(GradientContext& c) {
  Emitter& e = c.e;
  Rows rows(c);
  const Value data = c.input(0);
  const DType dtype = c.input_dtype(0);
  const Value zero = e.const_scalar(dtype, 0);
  const Value is_zero = e.call("Equal", {data, zero});
  const Value others = e.call("Select", {is_zero, e.const_scalar(dtype, 1), data});
  const Value product_of_others = rows.spread(rows.reduce("Prod", others));
  const Value zeros = rows.spread(rows.reduce("Sum", e.cast(is_zero, dtype)));
  const Value without_zero = e.call("Equal", {zeros, zero});
  const Value only_zero =
      e.call("LogicalAnd", {is_zero, e.call("Equal", {zeros, e.const_scalar(dtype, 1)})});
  const Value factor = e.call("Select", {without_zero, e.div(product_of_others, others),
                                         e.call("Select", {only_zero, product_of_others, zero})});
  c.set(0, e.mul(rows.spread(c.gradient()), e.conj(factor)));
}

// Row i of the gathered data got row ids[i]; row r of the data the sum over all i that chose it.
void scatter_rows(GradientContext& c, Value gradient) {
  Emitter& e = c.e;
  const Value rows = e.call("Gather", {gradient, c.input(2), int_scalar(e, 0)});
  const Value count = element_of(e, c.input_shape_value(0), 0);
  c.set(0, e.call("UnsortedSegmentSum", {rows, c.input(1), count}));
}
void sparse_sum_gradient(GradientContext& c) { scatter_rows(c, c.gradient()); }
void sparse_mean_gradient(GradientContext& c) {
  scatter_rows(c, divided_by_counts(c, c.input(2), nullptr));
}
void sparse_sqrt_n_gradient(GradientContext& c) {
  scatter_rows(c, divided_by_counts(c, c.input(2), "Sqrt"));
}

struct Reduction {
  const char* name;
  const char* types;
  GradientFn gradient;
  bool reads_data;
  bool reads_output;
  const char* verb;
  const char* empty;
};

constexpr Reduction kSum = {"Sum", kNumbers, sum_gradient, false, false, "Sums", "0"};
constexpr Reduction kProd = {"Prod", kNumbers, product_gradient, true, false, "Products", "1"};
constexpr Reduction kMax = {
    "Max", kReals, extremum_gradient, true, true, "Maxima", "the lowest number of its dtype"};
constexpr Reduction kMin = {
    "Min", kReals, extremum_gradient, true, true, "Minima", "the highest number of its dtype"};
constexpr Reduction kMean = {"Mean", kReals, mean_gradient, false, false, "Means", "0"};

void declare_gradient(OpDeclaration& op, const Reduction& reduction) {
  if (reduction.reads_output) {
    op.gradient(reduction.gradient, {"data", "segment_ids", "output"});
  } else if (reduction.reads_data) {
    op.gradient(reduction.gradient, {"data", "segment_ids"});
  } else {
    op.gradient(reduction.gradient, {"segment_ids"});
  }
}

}  // namespace

void register_segment_ops(OpRegistry& r) {
  for (const Reduction& reduction : {kSum, kProd, kMax, kMin, kMean}) {
    OpDeclaration op = r.op(concat("Segment", reduction.name), HostAccess::kNone);
    op.input("data: T")
        .input("segment_ids: Tindices")
        .output("output: T")
        .attr(reduction.types)
        .attr("Tindices: {int32, int64}")
        .data_dependent_shape()
        .shape(segment_shape)
        .doc(concat(reduction.verb,
                    " of the rows of `data` that have the same segment id.\n\n"
                    "segment_ids: one per row, not negative and not decreasing; the result has as "
                    "many rows as the last id plus 1. "
                    "A segment without rows is ",
                    std::string_view(reduction.name) == "Prod" ? "1" : "0",
                    ".\nErrors: InvalidArgument when ids decrease or are negative."));
    declare_gradient(op, reduction);
  }
  struct Sparse {
    const char* name;
    GradientFn gradient;
    const char* what;
  };
  for (const Sparse& sparse :
       {Sparse{"Sum", sparse_sum_gradient, "Sums"}, Sparse{"Mean", sparse_mean_gradient, "Means"},
        Sparse{"SqrtN", sparse_sqrt_n_gradient,
               "Sums, divided by the square root of the number,"}}) {
    r.op(concat("SparseSegment", sparse.name), HostAccess::kNone)
        .input("data: T")
        .input("indices: Tidx")
        .input("segment_ids: Tindices")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double}")
        .attr("Tidx: {int32, int64} = int32")
        .attr("Tindices: {int32, int64} = int32")
        .data_dependent_shape()
        .shape(sparse_segment_shape)
        .gradient(sparse.gradient, {"indices", "segment_ids"})
        .doc(concat(
            sparse.what,
            " of the rows of `data` that `indices` chooses for the same segment: the rows of "
            "an embedding that belong to one sentence.\n\n"
            "indices: rows of data, in any order and repeated; segment_ids: one per index, "
            "not negative and not decreasing. A segment without rows is 0.\nErrors: "
            "InvalidArgument when an index is out of range or ids decrease."));
  }
  for (const Reduction& reduction : {kSum, kProd, kMax, kMin}) {
    OpDeclaration op = r.op(concat("UnsortedSegment", reduction.name), HostAccess::kNone);
    op.input("data: T")
        .input("segment_ids: Tindices")
        .input("num_segments: Tnumsegments")
        .output("output: T")
        .attr(reduction.types)
        .attr("Tindices: {int32, int64}")
        .attr("Tnumsegments: {int32, int64} = int32")
        .host("num_segments")
        .shape(unsorted_segment_shape)
        .doc(concat(reduction.verb,
                    " of the rows of `data` that have the same segment id, ids in any order.\n\n"
                    "segment_ids: its shape is a prefix of data.shape; rows with a negative id are "
                    "left out. Rows are taken in "
                    "their order. A segment without rows is ",
                    reduction.empty,
                    ".\nErrors: InvalidArgument for an id of num_segments or more."));
    declare_gradient(op, reduction);
  }
  r.finish("segment");
}

}  // namespace treenail
