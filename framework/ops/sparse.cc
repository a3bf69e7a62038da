// SPDX-License-Identifier: Apache-2.0
// Sparse tensors, given as indices [n, rank] (ascending, in row-major order), values [n] and dense
// shape [rank].
#include <algorithm>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void sparse_to_dense_shape(ShapeContext& c) {
  const PartialShape& indices = c.input(0);
  const PartialShape output = extents_from_value(c, 1);
  if (c.input(3).rank_known()) c.with_rank(3, 0);
  if (indices.rank_known()) {
    if (indices.rank() > 2) {
      throw invalid_argument("sparse_indices must be a scalar, a vector or a matrix, got ",
                             indices);
    }
    const int64_t depth = indices.rank() < 2 ? 1 : indices[1];
    if (depth != kUnknown && output.rank_known() && depth != output.rank()) {
      throw invalid_argument("output_shape has ", output.rank(), " elements, but sparse_indices ",
                             indices, " index ", depth, " axes");
    }
    const int64_t count = indices.rank() == 0 ? 1 : indices[0];
    const PartialShape& values = c.input(2);
    if (values.rank_known() && values.rank() > 1) {
      throw invalid_argument("sparse_values must be a scalar or a vector, got ", values);
    }
    if (values.rank() == 1) {
      ShapeContext::merge_dim(values[0], count, "the number of sparse_indices and sparse_values");
    }
  }
  c.set_output(0, output);
}

// The gradients of the values lie where the values went; the default's is what is left.
void sparse_to_dense_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value g = c.gradient();
  const PartialShape values = c.input_shape(2);
  // Indices as rows of one column unless they are a matrix.
  Value rows = c.input(0);
  const PartialShape indices = c.input_shape(0);
  if (!indices.rank_known()) {
    const Value depth = e.call("Size", {c.input(1)}, {{"out_type", DType::kInt64}});
    const std::vector<Value> shape = {int_scalar(e, -1, DType::kInt64), depth};
    rows = e.reshape(rows, e.call("Pack", shape));
  } else if (indices.rank() < 2) {
    rows = e.reshape(rows, int_vector(e, {-1, 1}));
  }
  const Value gathered = e.call("GatherNd", {g, rows});
  const Value sum = sum_of_all(e, gathered);
  if (c.needed(2)) {
    // A scalar went to every place.
    if (values.rank_known()) {
      c.set(2, values.rank() == 0 ? sum : gathered);
    } else {
      c.set(2, e.sum_to_shape_of(gathered, c.input(2)));
    }
  }
  if (c.needed(3)) c.set(3, e.sub(sum_of_all(e, g), sum));
}

// The rank that a pair of indices [n, rank] and shape [rank] agrees on, kUnknown when not known.
int64_t checked_sparse(ShapeContext& c, int first, const char* name) {
  const PartialShape indices = c.with_rank(first, 2);
  ShapeContext::merge_dim(
      indices[0], c.with_rank(first + 1, 1)[0],
      concat("the rows of ", name, "_indices and the length of ", name, "_values"));
  return ShapeContext::merge_dim(
      indices[1], c.with_rank(first + 2, 1)[0],
      concat("the columns of ", name, "_indices and the length of ", name, "_shape"));
}

void edit_distance_shape(ShapeContext& c) {
  const int64_t rank =
      ShapeContext::merge_dim(checked_sparse(c, 0, "hypothesis"), checked_sparse(c, 3, "truth"),
                              "the ranks of hypothesis and truth");
  if (rank == 0) throw invalid_argument("hypothesis and truth must have a rank of 1 or more");
  const PartialShape a = extents_from_value(c, 2), b = extents_from_value(c, 5);
  if (!a.rank_known() || !b.rank_known()) {
    if (rank != kUnknown)
      c.set_output(0, PartialShape::unknown_with_rank(static_cast<int>(rank) - 1));
    return;
  }
  PartialShape output = a.sub(0, a.rank() - 1);
  for (int i = 0; i < output.rank(); ++i) {
    const bool known = a[i] != kUnknown && b[i] != kUnknown;
    output = output.with_dim(i, known ? std::max(a[i], b[i]) : kUnknown);
  }
  c.set_output(0, output);
}

}  // namespace

void register_sparse_ops(OpRegistry& r) {
  r.op("SparseToDense", HostAccess::kNone)
      .input("sparse_indices: Tindices")
      .input("output_shape: Tindices")
      .input("sparse_values: T")
      .input("default_value: T")
      .output("dense: T")
      .attr("validate_indices: bool = true")
      .attr("T: type")
      .attr("Tindices: {int32, int64}")
      .host("output_shape")
      .shape(sparse_to_dense_shape)
      .gradient(sparse_to_dense_gradient, {"sparse_indices", "output_shape", "sparse_values"})
      .doc(
          "A tensor of output_shape that has sparse_values at sparse_indices and default_value "
          "elsewhere.\n\n"
          "sparse_indices: [n, rank]; a vector [n] or a scalar for rank 1. sparse_values: [n], or "
          "a scalar that goes to every place. validate_indices: they must ascend in row-major "
          "order, none twice; otherwise the last value at a place stays (the gradient assumes "
          "that none is repeated).\n\nErrors: InvalidArgument for an index outside output_shape, "
          "out of order or repeated.");
  r.op("EditDistance", HostAccess::kNone)
      .input("hypothesis_indices: int64")
      .input("hypothesis_values: T")
      .input("hypothesis_shape: int64")
      .input("truth_indices: int64")
      .input("truth_values: T")
      .input("truth_shape: int64")
      .output("output: float")
      .attr("normalize: bool = true")
      .attr("T: type")
      .host("hypothesis_shape")
      .host("truth_shape")
      .shape(edit_distance_shape)
      .not_differentiable()
      .doc(
          "The Levenshtein distance of sequences: how many insertions, deletions and "
          "substitutions make one of the other.\n\n"
          "hypothesis and truth are sparse tensors [..., places] whose values of one row are a "
          "sequence; the result is [...], each extent the larger of the two. normalize: divided "
          "by the length of the truth (infinite where only that is empty, 0 where both "
          "are).\n\nErrors: InvalidArgument for indices outside their shape or out of order. "
          "Source: Levenshtein, Binary Codes Capable of Correcting Deletions, Insertions, and "
          "Reversals, 1966.");
  r.finish("sparse");
}

}  // namespace treenail
