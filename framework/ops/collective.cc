// SPDX-License-Identifier: Apache-2.0
// Collective operations: all processes of a group call the same one, and each gets its share of the
// result. Executions of several ranks belong together by `key`, or by the node's name where that is
// empty, and by how often it ran before; so they may run in another order on each rank. Gradients
// are those of the sum of all ranks' losses; the nodes they add have no key, for a graph may be
// differentiated twice. Kernels: kernels/host/collectives/collective.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kKey[] =
    "\n\nkey: what executions of all ranks have in common; empty: the node's name, in immediate "
    "execution their order. At any time only one execution of a key may be waited for.\n"
    "Errors: FailedPrecondition where the process has joined no group; InvalidArgument where ranks "
    "ask for different things; Unavailable where a rank has ended; DeadlineExceeded where one does "
    "not come in time.";

Value group_value(Emitter& e, int output) {
  return e.emit("CollectiveRank", {}, {})[static_cast<size_t>(output)];
}
Value scalar_int(Emitter& e, int64_t value) {
  return e.const_scalar(DType::kInt32, static_cast<double>(value));
}

// --- Shapes
// ---------------------------------------------------------------------------------------

// Complex numbers have no order, and the mean is one of numbers with fractions.
void check_reduction(const ShapeContext& c) {
  const std::string& reduction = c.op().get_string("reduction");
  const DType dtype = c.op().get_type("T");
  if (reduction == "mean" && is_integer(dtype))
    throw invalid_argument("the mean of ", dtype, " is asked for; a floating dtype is needed");
  if (is_complex(dtype) && (reduction == "min" || reduction == "max"))
    throw invalid_argument("the ", reduction, " of ", dtype, " is asked for; it has no order");
}

void all_reduce_shape(ShapeContext& c) {
  check_reduction(c);
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
}

void other_rows_shape(ShapeContext& c) {
  const PartialShape in = c.with_rank_at_least(0, 1);
  c.set_output(0, in.rank_known() ? in.with_dim(0, kUnknown) : in);
}

void reduce_scatter_shape(ShapeContext& c) {
  check_reduction(c);
  other_rows_shape(c);
}

void all_to_all_shape(ShapeContext& c) { c.set_output(0, c.with_rank_at_least(0, 1)); }

void broadcast_shape(ShapeContext& c) {
  if (c.op().get_int("root") < 0)
    throw invalid_argument("root is ", c.op().get_int("root"), "; a rank is at least 0");
  c.set_output(0, c.input(0));
}

// --- Gradients
// ------------------------------------------------------------------------------------

std::vector<Value> reduced(Emitter& e, const std::vector<Value>& values, const char* reduction) {
  return e.emit("CollectiveAllReduce", values, {{"reduction", std::string(reduction)}});
}

// The ranks whose value is the extreme one share its gradient.
Value extreme_gradient(GradientContext& c, int i, Value total) {
  Emitter& e = c.e;
  const Value mine = e.cast(e.call("Equal", {c.input(i), c.output(i)}), c.input_dtype(i));
  return e.div(e.mul(total, mine), reduced(e, {mine}, "sum")[0]);
}

// The product of all other ranks' values, without a division.
Value product_gradient(GradientContext& c, int i, Value total) {
  Emitter& e = c.e;
  const Value zero = scalar_int(e, 0);
  const Value all = e.call("CollectiveAllGather", {e.call("ExpandDims", {c.input(i), zero})});
  const Value before = e.call("Cumprod", {all, zero}, {{"exclusive", true}});
  const Value after = e.call("Cumprod", {all, zero}, {{"exclusive", true}, {"reverse", true}});
  const Value others = e.call("Gather", {e.mul(before, after), group_value(e, 0), zero});
  return e.mul(total, e.conj(others));
}

void all_reduce_gradient(GradientContext& c) {
  const std::string& reduction = c.op().get_string("reduction");
  const bool mean = reduction == "mean";
  std::vector<Value> gradients;
  for (int i = 0; i < c.num_inputs(); ++i) gradients.push_back(c.gradient(i));
  const std::vector<Value> totals = reduced(c.e, gradients, mean ? "mean" : "sum");
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Value total = totals[static_cast<size_t>(i)];
    if (reduction == "min" || reduction == "max") {
      c.set(i, extreme_gradient(c, i, total));
    } else {
      c.set(i, reduction == "product" ? product_gradient(c, i, total) : total);
    }
  }
}

// All of it is the root's.
void broadcast_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value total = reduced(e, {c.gradient()}, "sum")[0];
  const Value is_root = e.call("Equal", {group_value(e, 0), scalar_int(e, c.op().get_int("root"))});
  c.set(0, e.call("MulNoNan", {total, e.cast(is_root, c.input_dtype(0))}));
}

// The rows that came from this rank, which may be another number on each.
void all_gather_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value total = reduced(e, {c.gradient()}, "sum")[0];
  const Value size = c.input_shape_value(0);
  const Value zero = scalar_int(e, 0);
  const int64_t first[] = {0}, one[] = {1};
  const Value rows =
      e.call("Slice", {size, e.const_ints(DType::kInt64, first), e.const_ints(DType::kInt64, one)});
  const Value ends =
      e.call("Cumsum", {e.call("CollectiveAllGather", {rows}), zero}, {{"exclusive", true}});
  const Value begin = e.call("Gather", {ends, group_value(e, 0), zero});
  // [begin, 0, ...]
  const Value place = e.call("ExpandDims", {begin, zero});
  const Value tail = e.call("Slice", {e.zeros_like(size), e.const_ints(DType::kInt64, one),
                                      e.const_ints(DType::kInt64, std::vector<int64_t>{-1})});
  c.set(0, e.call("Slice", {total, e.call("Concat", {place, tail, zero}), size}));
}

void reduce_scatter_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value all = e.call("CollectiveAllGather", {c.gradient()});
  if (c.op().get_string("reduction") == "sum") return c.set(0, all);
  c.set(0, e.div(all, e.cast(group_value(e, 1), c.input_dtype(0))));
}

void all_to_all_gradient(GradientContext& c) {
  c.set(0, c.e.call("CollectiveAllToAll", {c.gradient()}));
}

// --- Declarations
// ---------------------------------------------------------------------------------

void register_reducing(OpRegistry& r) {
  r.op("CollectiveAllReduce", HostAccess::kNetwork)
      .input("values: N * T")
      .output("reduced: N * T")
      .attr("reduction: {'sum', 'mean', 'min', 'max', 'product'} = 'sum'")
      .attr("key: string = ''")
      .attr("N: int >= 1")
      .attr("T: numbertype")
      .stateful()
      .asynchronous()
      .shape(all_reduce_shape)
      .gradient(all_reduce_gradient, {"values", "reduced"})
      .doc(std::string("Each value reduced over all ranks of the group, element by element and in "
                       "the order of ranks: the bits depend on the values alone. half and bfloat16 "
                       "are reduced in float and rounded once.\n\nShapes are alike on all ranks, "
                       "and as those of `values`. reduction: 'mean' is for floating and complex "
                       "dtypes, 'min' and 'max' are for real ones.") +
           kKey);
  r.op("CollectiveReduceScatter", HostAccess::kNetwork)
      .input("input: T")
      .output("output: T")
      .attr("reduction: {'sum', 'mean'} = 'sum'")
      .attr("key: string = ''")
      .attr("T: numbertype")
      .stateful()
      .asynchronous()
      .data_dependent_shape()
      .shape(reduce_scatter_shape)
      .gradient(reduce_scatter_gradient)
      .doc(std::string("The sum or mean over all ranks, of which rank r gets part r of the first "
                       "axis.\n\nShape: that of `input`, alike on all ranks, with the first extent "
                       "divided by the number of ranks, of which it is a multiple.") +
           kKey);
}

void register_moving(OpRegistry& r) {
  const auto declare = [&](const char* name, ShapeFn shape, GradientFn gradient, const char* doc) {
    return r.op(name, HostAccess::kNetwork)
        .input("input: T")
        .output("output: T")
        .attr("key: string = ''")
        .attr("T: {numbertype, bool}")
        .stateful()
        .asynchronous()
        .shape(shape)
        .gradient(gradient)
        .doc(std::string(doc) + kKey);
  };
  declare("CollectiveBroadcast", broadcast_shape, broadcast_gradient,
          "The input of rank `root`.\n\nShape: that of `input`, alike on all ranks.")
      .attr("root: int = 0");
  declare("CollectiveAllGather", other_rows_shape, all_gather_gradient,
          "The inputs of all ranks in their order, joined along the first axis.\n\nShape: that of "
          "`input`, of which only the first extent may differ between ranks: their sum is the "
          "output's.")
      .data_dependent_shape();
  declare("CollectiveAllToAll", all_to_all_shape, all_to_all_gradient,
          "Part r of the first axis goes to rank r; what comes is joined in the order of "
          "ranks.\n\nShape: that of `input`, alike on all ranks; the first extent is a multiple of "
          "the number of ranks.");
}

}  // namespace

void register_collective_ops(OpRegistry& r) {
  register_reducing(r);
  register_moving(r);
  r.op("CollectiveBarrier", HostAccess::kNetwork)
      .attr("key: string = ''")
      .stateful()
      .asynchronous()
      .any_device()
      .not_differentiable()
      .shape(no_outputs_shape)
      .doc(std::string("Ends when all ranks have come to it.") + kKey);
  r.op("CollectiveRank", HostAccess::kNetwork)
      .output("rank: int32")
      .output("size: int32")
      .stateful()
      .not_differentiable()
      .shape(scalar_shape)
      .doc(
          "The rank of this process in its group, and how many there are.\n\nErrors: "
          "FailedPrecondition where it has joined none.");
  r.finish("collective");
}

}  // namespace treenail
