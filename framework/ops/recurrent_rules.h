// SPDX-License-Identifier: Apache-2.0
// What the rules of the recurrent families (lstm.cc, gru.cc) share: gradients of the nonlinearities
// in terms of their outputs, of joined operands, and the sizes of a layer.
#pragma once

#include "framework/op/gradient.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {

// A layer's extents, known or kUnknown. Sequences are [time, batch, ...].
struct LayerSizes {
  int64_t time = kUnknown, batch = kUnknown, input = kUnknown, cell = kUnknown;
};

// Merges the shapes of x ([time,] batch, input) and of states [batch, cell] into `sizes`.
// Errors: InvalidArgument, naming the argument, for another rank or extents that do not agree.
void merge_input(const ShapeContext& c, int x, bool sequence, LayerSizes& sizes);
void merge_state(const ShapeContext& c, int state, LayerSizes& sizes);
// A vector of `gates` numbers per cell; `count` may be empty instead where `optional`.
void merge_bias(const ShapeContext& c, int bias, int64_t gates, LayerSizes& sizes);
// Weights [input + cell, gates * cell].
void merge_weights(const ShapeContext& c, int weights, int64_t gates, LayerSizes& sizes);
// [time,] batch, cell.
PartialShape layer_output(const LayerSizes& sizes, bool sequence);
// The rule of a layer whose outputs all have that shape.
void set_layer_outputs(ShapeContext& c, const LayerSizes& sizes, bool sequence);
// What BlockLSTMGrad and BlockGRUGrad are given and give: `values` is the first of the layer's
// outputs, which gradients that arrive, the last states' and the gates' own follow, each of them
// maybe empty; the gradients given are of x, of `states` states and of the inputs from `weights`
// on.
struct LayerGradient {
  int weights, values, outputs, states, gates;
  const char* gate_names;
};
// The rule of such an op. Errors: InvalidArgument, naming the argument.
void set_layer_gradients(ShapeContext& c, const LayerSizes& sizes, const LayerGradient& g);
// Of the products of a layer's op, and of its gradient's, which has two for each: by its inputs "x"
// and the matrices among those whose names begin with w.
double layer_flops(const OpInstance& op, std::span<const Shape> inputs,
                   std::span<const Shape> outputs);
// Input i must have this shape; or be [0] where it may be empty. Errors: InvalidArgument, naming
// it.
void same_shape(const ShapeContext& c, int i, const PartialShape& wanted, bool or_empty);

// x y (1 - y): through y = sigmoid(..); x (1 - y^2): through y = tanh(..).
Value through_sigmoid(Emitter& e, Value gradient, Value y);
Value through_tanh(Emitter& e, Value gradient, Value y);
// [0], of the type of `like`: stands for a gradient of zero.
Value no_elements(Emitter& e, Value like);
// Columns of two matrices side by side.
Value beside(Emitter& e, Value a, Value b);
// The columns [0, |input|) and the rest of a matrix whose columns are input's and then others.
Value left_columns(Emitter& e, Value matrix, Value input_shape);
Value right_columns(Emitter& e, Value matrix, Value input_shape);
// a b^T, a^T b and the sum over rows.
Value times_transposed(Emitter& e, Value a, Value b);
Value transposed_times(Emitter& e, Value a, Value b);
Value sum_of_rows(Emitter& e, Value matrix);

}  // namespace treenail
