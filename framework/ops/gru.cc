// SPDX-License-Identifier: Apache-2.0
// Gated recurrent units: one step (GRUBlockCell) and a whole sequence (BlockGRU, with its
// gradient). The cell's gradient is made of elementary ops, so that any order follows; the
// sequence's is one op, whose own gradient is refused. LSTM: lstm.cc. Kernels: kernels/cpu/gru*.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/recurrent_rules.h"

namespace treenail {
namespace {

constexpr char kTypes[] = "T: {half, bfloat16, float, double}";

struct Places {
  int x, h_prev, w_ru, w_c, b_ru, b_c;
  explicit Places(int first)
      : x(first),
        h_prev(first + 1),
        w_ru(first + 2),
        w_c(first + 3),
        b_ru(first + 4),
        b_c(first + 5) {}
};
enum Output : int { kR, kU, kC, kH, kOutputs };

LayerSizes sizes_of(const ShapeContext& c, bool sequence) {
  const Places p(sequence ? 1 : 0);
  LayerSizes sizes;
  merge_input(c, p.x, sequence, sizes);
  merge_state(c, p.h_prev, sizes);
  merge_bias(c, p.b_c, 1, sizes);
  merge_bias(c, p.b_ru, 2, sizes);
  merge_weights(c, p.w_ru, 2, sizes);
  merge_weights(c, p.w_c, 1, sizes);
  return sizes;
}

void cell_shape(ShapeContext& c) { set_layer_outputs(c, sizes_of(c, false), false); }
void sequence_shape(ShapeContext& c) { set_layer_outputs(c, sizes_of(c, true), true); }

void sequence_grad_shape(ShapeContext& c) {
  const Places p(1);
  set_layer_gradients(c, sizes_of(c, true), {p.w_ru, p.b_c + 1, kOutputs, 1, 3, "r, u and c"});
}

// --- The gradient of a cell ---------------------------------------------------------------------

void cell_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Places p(0);
  auto arriving = [&](int output) { return c.has_gradient(output) ? c.gradient(output) : Value{}; };
  const Value r = c.output(kR), u = c.output(kU), candidate = c.output(kC);
  const Value x = c.input(p.x), h_prev = c.input(p.h_prev), x_shape = c.input_shape_value(p.x);
  const Value h = c.gradient(kH);
  const Value d_c =
      through_tanh(e, sum_of_valid(e, arriving(kC), e.mul(h, e.sub(e.ones_like(u), u))), candidate);
  const Value d_u =
      through_sigmoid(e, sum_of_valid(e, arriving(kU), e.mul(h, e.sub(h_prev, candidate))), u);
  const Value through_c = times_transposed(e, d_c, c.input(p.w_c));
  const Value d_reset = right_columns(e, through_c, x_shape);  // of r h_prev
  const Value d_r = through_sigmoid(e, sum_of_valid(e, arriving(kR), e.mul(d_reset, h_prev)), r);
  const Value d_ru = beside(e, d_r, d_u);
  if (c.needed(p.x) || c.needed(p.h_prev)) {
    const Value through_ru = times_transposed(e, d_ru, c.input(p.w_ru));
    if (c.needed(p.x)) {
      c.set(p.x, e.add(left_columns(e, through_ru, x_shape), left_columns(e, through_c, x_shape)));
    }
    if (c.needed(p.h_prev)) {
      c.set(p.h_prev,
            e.add(e.add(e.mul(h, u), e.mul(d_reset, r)), right_columns(e, through_ru, x_shape)));
    }
  }
  if (c.needed(p.w_ru)) c.set(p.w_ru, transposed_times(e, beside(e, x, h_prev), d_ru));
  if (c.needed(p.w_c)) c.set(p.w_c, transposed_times(e, beside(e, x, e.mul(r, h_prev)), d_c));
  if (c.needed(p.b_ru)) c.set(p.b_ru, sum_of_rows(e, d_ru));
  if (c.needed(p.b_c)) c.set(p.b_c, sum_of_rows(e, d_c));
}

// --- The gradient of a sequence
// -------------------------------------------------------------------

void sequence_gradient(GradientContext& c) {
  const Places p(1);
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < kOutputs; ++i) inputs.push_back(c.output(i));
  inputs.push_back(c.has_gradient(kH) ? c.gradient(kH) : no_elements(c.e, c.output(kH)));
  const bool any = c.has_gradient(kR) || c.has_gradient(kU) || c.has_gradient(kC);
  for (const Output gate : {kR, kU, kC}) {
    if (any) inputs.push_back(c.gradient(gate));
  }
  std::vector<int> sizes(p.b_c + 1 + kOutputs + 1, 1);
  sizes.push_back(any ? 3 : 0);
  const std::vector<Value> result = c.e.emit(
      "BlockGRUGrad", inputs, {{"input_gradient", c.needed(p.x)}, {"T", c.op().attr("T")}}, sizes);
  for (int i = p.x; i <= p.b_c; ++i) {
    if (c.needed(i)) c.set(i, result.at(i - p.x));
  }
}

void second_gradient(GradientContext&) {
  throw unimplemented(
      "a sequence's gradient has no gradient of its own; unroll GRUBlockCell (static_rnn), which "
      "has gradients of any order");
}

constexpr char kStep[] =
    "[r, u] = sigmoid([x, h_prev] w_ru + b_ru); c = tanh([x, r h_prev] w_c + b_c); h = u h_prev + "
    "(1 - u) c\n\n"
    "w_ru is [input + cell, 2 cell] and b_ru [2 cell], with the columns of r before those of u; "
    "w_c is [input + cell, cell] and b_c [cell]. Every output passes gradients on.\n"
    "Source: Cho and others, Learning phrase representations using RNN encoder-decoder, 2014.\n";

void add_layer_inputs(OpDeclaration& op) {
  for (const char* input : {"x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"})
    op.input(input);
}
void add_layer_outputs(OpDeclaration& op) {
  for (const char* output : {"r: T", "u: T", "c: T", "h: T"}) op.output(output);
  op.attr(kTypes);
}

void declare_sequence_grad(OpRegistry& r) {
  OpDeclaration op = r.op("BlockGRUGrad", HostAccess::kNone);
  op.input("seq_len_max: int64");
  add_layer_inputs(op);
  for (const char* input : {"r: T", "u: T", "c: T", "h: T", "h_grad: T", "gate_grads: N * T"})
    op.input(input);
  for (const char* output : {"x_grad: T", "h_prev_grad: T", "w_ru_grad: T", "w_c_grad: T",
                             "b_ru_grad: T", "b_c_grad: T"}) {
    op.output(output);
  }
  op.attr("input_gradient: bool = true").attr("N: int >= 0 = 0").attr(kTypes);
  op.shape(sequence_grad_shape).flops(layer_flops).gradient(second_gradient);
  op.doc(
      "Computes the gradients of BlockGRU.\n\n"
      "The first inputs are its own, r to h its outputs, h_grad the gradient of h, empty, [0], "
      "where it is zero; gate_grads those of r, u and c, or nothing. Without input_gradient x_grad "
      "is empty, [0].\n"
      "Errors: as BlockGRU. Its own gradient is Unimplemented.");
}

}  // namespace

void register_gru_ops(OpRegistry& r) {
  OpDeclaration cell = r.op("GRUBlockCell", HostAccess::kNone);
  add_layer_inputs(cell);
  add_layer_outputs(cell);
  cell.shape(cell_shape)
      .flops(layer_flops)
      .gradient(cell_gradient, {"x", "h_prev", "w_ru", "w_c", "r", "u", "c"})
      .doc(concat("One step of a layer of gated recurrent units.\n\n", kStep,
                  "x is [batch, input]; h_prev and the outputs are [batch, cell].\n"
                  "Errors: InvalidArgument for shapes that do not agree."));

  OpDeclaration sequence = r.op("BlockGRU", HostAccess::kNone);
  sequence.input("seq_len_max: int64");
  add_layer_inputs(sequence);
  add_layer_outputs(sequence);
  sequence.shape(sequence_shape)
      .flops(layer_flops)
      .gradient(sequence_gradient,
                {"seq_len_max", "x", "h_prev", "w_ru", "w_c", "b_ru", "b_c", "r", "u", "c", "h"})
      .doc(concat("A layer of gated recurrent units over a sequence.\n\n", kStep,
                  "x is [time, batch, input], outputs are [time, batch, cell]; h_prev, [batch, "
                  "cell], is the state before the first step. Steps from seq_len_max on are not "
                  "computed, and their outputs zero.\n"
                  "Errors: InvalidArgument for shapes that do not agree, or seq_len_max outside "
                  "[0, time]."));
  declare_sequence_grad(r);
  r.finish("gru");
}

}  // namespace treenail
