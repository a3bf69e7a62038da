// SPDX-License-Identifier: Apache-2.0
// Rows dealt out to several tensors by number, and interleaved again.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void dynamic_partition_shape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& partitions = c.input(1);
  if (!data.rank_known() || !partitions.rank_known()) return;
  if (partitions.rank() > data.rank() || !data.sub(0, partitions.rank()).compatible(partitions)) {
    throw invalid_argument("data.shape must start with partitions.shape, got data.shape = ", data,
                           ", partitions.shape = ", partitions);
  }
  const PartialShape rows = data.sub(partitions.rank(), data.rank()).inserted(0, kUnknown);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, rows);
}

// The gradients of the parts, put back where their rows came from: the row numbers are dealt out in
// the same way.
void dynamic_partition_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value partitions = c.input(1);
  const Value count = e.call("Size", {partitions});
  const Value numbers = e.reshape(e.call("Range", {int_scalar(e, 0), count, int_scalar(e, 1)}),
                                  c.input_shape_value(1));
  const std::vector<Value> dealt = {numbers, partitions};
  std::vector<Value> inputs =
      e.emit("DynamicPartition", dealt, {{"num_partitions", c.num_outputs()}});
  for (int i = 0; i < c.num_outputs(); ++i) inputs.push_back(c.gradient(i));
  c.set(0, e.reshape(e.call("DynamicStitch", inputs), c.input_shape_value(0)));
}

// The largest of n index tensors' values plus 1, where all of them are known.
int64_t stitched_rows(const ShapeContext& c, int n) {
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor* indices = c.constant(i);
    if (indices == nullptr) return kUnknown;
    for (int64_t k = 0; k < indices->num_elements(); ++k) {
      rows = std::max(rows, int64_t{indices->data<int32_t>()[k]} + 1);
    }
  }
  return rows;
}

void dynamic_stitch_shape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape row;
  for (int i = 0; i < n; ++i) {
    const PartialShape& indices = c.input(i);
    const PartialShape& data = c.input(n + i);
    if (!indices.rank_known() || !data.rank_known()) continue;
    if (indices.rank() > data.rank() || !data.sub(0, indices.rank()).compatible(indices)) {
      throw invalid_argument("data[", i, "].shape = ", data, " does not start with indices[", i,
                             "].shape = ", indices);
    }
    const PartialShape rest = data.sub(indices.rank(), data.rank());
    if (!row.compatible(rest)) {
      throw invalid_argument("Need data[0].shape[", c.input(0).rank(), ":] = data[", i, "].shape[",
                             indices.rank(), ":], got ", row, " and ", rest);
    }
    row = ShapeContext::merge(row, rest, "rows");
  }
  if (row.rank_known()) c.set_output(0, row.inserted(0, stitched_rows(c, n)));
}

void dynamic_stitch_gradient(GradientContext& c) {
  const int n = c.num_inputs() / 2;
  const Value gradient = c.gradient();
  for (int i = 0; i < n; ++i) {
    if (c.needed(n + i))
      c.set(n + i, c.e.call("Gather", {gradient, c.input(i), int_scalar(c.e, 0)}));
  }
}

}  // namespace

void register_partition_ops(OpRegistry& r) {
  r.op("DynamicPartition", HostAccess::kNone)
      .input("data: T")
      .input("partitions: int32")
      .output("outputs: num_partitions * T")
      .attr("num_partitions: int >= 1")
      .attr("T: type")
      .data_dependent_shape()
      .shape(dynamic_partition_shape)
      .gradient(dynamic_partition_gradient, {"partitions"})
      .doc(
          "Deals the rows of `data` out to `num_partitions` tensors: row i goes to output "
          "partitions[i], in order.\n\n"
          "partitions: its shape is a prefix of data.shape. Errors: InvalidArgument for a number "
          "outside [0, num_partitions).");
  r.op("DynamicStitch", HostAccess::kNone)
      .input("indices: N * int32")
      .input("data: N * T")
      .output("merged: T")
      .attr("N: int >= 1")
      .attr("T: type")
      .data_dependent_shape()
      .shape(dynamic_stitch_shape)
      .gradient(dynamic_stitch_gradient, {"indices"})
      .doc(
          "Interleaves rows: merged[indices[m][i], ...] = data[m][i, ...]; later ones replace "
          "earlier ones.\n\n"
          "The result has as many rows as the largest index plus 1; rows that no index names are "
          "zero. Errors: InvalidArgument for "
          "a negative index.");
  r.finish("partition");
}

}  // namespace treenail
