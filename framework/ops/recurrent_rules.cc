// SPDX-License-Identifier: Apache-2.0
#include "framework/ops/recurrent_rules.h"

#include "framework/base/error.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

int64_t merge_extent(const ShapeContext& c, int i, int64_t extent, int64_t known,
                     const char* what) {
  if (known == kUnknown || extent == kUnknown || known == extent)
    return known == kUnknown ? extent : known;
  throw invalid_argument(c.op().input_name(i), " has ", what, " ", extent, ", needed is ", known,
                         ": its shape is ", c.input(i));
}

PartialShape ranked(const ShapeContext& c, int i, int rank) {
  const PartialShape& shape = c.input(i);
  if (shape.rank_known() && shape.rank() != rank) {
    throw invalid_argument(c.op().input_name(i), " must have rank ", rank, ", its shape is ",
                           shape);
  }
  return c.with_rank(i, rank);
}

}  // namespace

void merge_input(const ShapeContext& c, int x, bool sequence, LayerSizes& sizes) {
  const PartialShape shape = ranked(c, x, sequence ? 3 : 2);
  if (sequence) sizes.time = merge_extent(c, x, shape[0], sizes.time, "time");
  sizes.batch = merge_extent(c, x, shape[sequence ? 1 : 0], sizes.batch, "batch size");
  sizes.input = merge_extent(c, x, shape[sequence ? 2 : 1], sizes.input, "input size");
}

void merge_state(const ShapeContext& c, int state, LayerSizes& sizes) {
  const PartialShape shape = ranked(c, state, 2);
  sizes.batch = merge_extent(c, state, shape[0], sizes.batch, "batch size");
  sizes.cell = merge_extent(c, state, shape[1], sizes.cell, "cell size");
}

void merge_bias(const ShapeContext& c, int bias, int64_t gates, LayerSizes& sizes) {
  const int64_t extent = ranked(c, bias, 1)[0];
  if (extent == kUnknown) return;
  if (extent % gates != 0) {
    throw invalid_argument(c.op().input_name(bias), " has ", extent, " elements, needed are ",
                           gates, " for each cell");
  }
  sizes.cell = merge_extent(c, bias, extent / gates, sizes.cell, "cell size");
}

void merge_weights(const ShapeContext& c, int weights, int64_t gates, LayerSizes& sizes) {
  const PartialShape shape = ranked(c, weights, 2);
  const int64_t rows = shape[0], columns = shape[1];
  if (columns != kUnknown) {
    if (columns % gates != 0) {
      throw invalid_argument(c.op().input_name(weights), " has ", columns, " columns, needed are ",
                             gates, " for each cell: its shape is ", shape);
    }
    sizes.cell = merge_extent(c, weights, columns / gates, sizes.cell, "cell size");
  }
  if (rows == kUnknown || sizes.cell == kUnknown) return;
  if (rows < sizes.cell || (sizes.input != kUnknown && rows - sizes.cell != sizes.input)) {
    throw invalid_argument(c.op().input_name(weights), " has ", rows,
                           " rows, needed is one for each input and each cell: x is ",
                           c.input(c.op().def().input_index("x")), ", the cell size is ",
                           sizes.cell);
  }
  sizes.input = rows - sizes.cell;
}

PartialShape layer_output(const LayerSizes& sizes, bool sequence) {
  return sequence ? PartialShape{sizes.time, sizes.batch, sizes.cell}
                  : PartialShape{sizes.batch, sizes.cell};
}

void set_layer_outputs(ShapeContext& c, const LayerSizes& sizes, bool sequence) {
  if (sequence) c.with_rank(0, 0);  // seq_len_max
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, layer_output(sizes, sequence));
}

void same_shape(const ShapeContext& c, int i, const PartialShape& wanted, bool or_empty) {
  const PartialShape& shape = c.input(i);
  if (shape.compatible(wanted) || (or_empty && shape.compatible(PartialShape{0}))) return;
  throw invalid_argument(c.op().input_name(i), " has shape ", shape, ", needed is ", wanted);
}

void set_layer_gradients(ShapeContext& c, const LayerSizes& sizes, const LayerGradient& g) {
  c.with_rank(0, 0);  // seq_len_max
  const PartialShape output = layer_output(sizes, true);
  for (int i = g.values; i < c.num_inputs(); ++i)
    same_shape(c, i, output, i >= g.values + g.outputs);
  const int more = c.num_inputs() - g.values - g.outputs - g.states;
  if (more != 0 && more != g.gates) {
    throw invalid_argument("gate_grads has ", more, " values, needed are those of ", g.gate_names,
                           ", or none");
  }
  c.set_output(0, c.op().get_bool("input_gradient")
                      ? PartialShape{sizes.time, sizes.batch, sizes.input}
                      : PartialShape{0});
  for (int i = 1; i < c.num_outputs(); ++i) {
    c.set_output(i, i <= g.states ? PartialShape{sizes.batch, sizes.cell}
                                  : c.input(g.weights + i - 1 - g.states));
  }
}

Value no_elements(Emitter& e, Value like) {
  return e.const_tensor(Tensor(e.dtype(like), Shape({0})));
}

Value through_sigmoid(Emitter& e, Value gradient, Value y) {
  return e.mul(gradient, e.mul(y, e.sub(e.ones_like(y), y)));
}

Value through_tanh(Emitter& e, Value gradient, Value y) {
  return e.mul(gradient, e.sub(e.ones_like(y), e.square(y)));
}

Value beside(Emitter& e, Value a, Value b) { return e.call("Concat", {a, b, int_scalar(e, 1)}); }

Value left_columns(Emitter& e, Value matrix, Value input_shape) {
  return e.call("Slice", {matrix, int_vector(e, {0, 0}, DType::kInt64), input_shape});
}

Value right_columns(Emitter& e, Value matrix, Value input_shape) {
  const Value begin = e.mul(input_shape, int_vector(e, {0, 1}, DType::kInt64));
  return e.call("Slice", {matrix, begin, int_vector(e, {-1, -1}, DType::kInt64)});
}

Value times_transposed(Emitter& e, Value a, Value b) {
  return e.call("MatMul", {a, b}, {{"transpose_b", true}});
}

Value transposed_times(Emitter& e, Value a, Value b) {
  return e.call("MatMul", {a, b}, {{"transpose_a", true}});
}

Value sum_of_rows(Emitter& e, Value matrix) { return e.call("Sum", {matrix, int_scalar(e, 0)}); }

double layer_flops(const OpInstance& op, std::span<const Shape> inputs, std::span<const Shape>) {
  const Shape& x = inputs[static_cast<size_t>(op.def().input_index("x"))];
  double per_row = 0, depth = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].rank() == 2 && op.input_def(static_cast<int>(i)).name.starts_with("w"))
      per_row += 2.0 * static_cast<double>(inputs[i].num_elements());
  }
  for (int axis = 0; axis < x.rank() - 1; ++axis) depth *= static_cast<double>(x.dim(axis));
  return (op.name().ends_with("Grad") ? 2 : 1) * depth * per_row;
}

}  // namespace treenail
