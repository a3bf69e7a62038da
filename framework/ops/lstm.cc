// SPDX-License-Identifier: Apache-2.0
// Long short-term memory: one step (LSTMBlockCell) and a whole sequence (BlockLSTM, with its
// gradient). The cell's gradient is made of elementary ops, so that any order follows; the
// sequence's is one op, whose own gradient is refused. GRU: gru.cc. Kernels: kernels/cpu/lstm*.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/recurrent_rules.h"

namespace treenail {
namespace {

constexpr char kTypes[] = "T: {half, bfloat16, float, double}";

// Where inputs and outputs stand; those of a sequence follow seq_len_max.
struct Places {
  int x, cs_prev, h_prev, w, wci, wcf, wco, b;
  explicit Places(int first)
      : x(first),
        cs_prev(first + 1),
        h_prev(first + 2),
        w(first + 3),
        wci(first + 4),
        wcf(first + 5),
        wco(first + 6),
        b(first + 7) {}
};
enum Output : int { kI, kCs, kF, kO, kCi, kCo, kH, kOutputs };

LayerSizes sizes_of(const ShapeContext& c, bool sequence) {
  const Places p(sequence ? 1 : 0);
  LayerSizes sizes;
  merge_input(c, p.x, sequence, sizes);
  merge_state(c, p.cs_prev, sizes);
  merge_state(c, p.h_prev, sizes);
  merge_bias(c, p.b, 4, sizes);
  merge_weights(c, p.w, 4, sizes);
  const bool peephole = c.op().get_bool("use_peephole");
  for (const int i : {p.wci, p.wcf, p.wco}) {
    if (peephole) {
      merge_bias(c, i, 1, sizes);
    } else {
      c.with_rank(i, 1);  // not read
    }
  }
  return sizes;
}

void cell_shape(ShapeContext& c) { set_layer_outputs(c, sizes_of(c, false), false); }
void sequence_shape(ShapeContext& c) { set_layer_outputs(c, sizes_of(c, true), true); }

void sequence_grad_shape(ShapeContext& c) {
  const Places p(1);
  set_layer_gradients(c, sizes_of(c, true), {p.w, p.b + 1, kOutputs, 2, 5, "i, f, o, ci and co"});
}

// --- The gradient of a cell ---------------------------------------------------------------------

// What arrives at the gates before their nonlinearities, and at the state.
struct GateGradients {
  Value i, ci, f, o, cs_prev;
};

GateGradients gate_gradients(GradientContext& c, const Places& p) {
  Emitter& e = c.e;
  const bool peephole = c.op().get_bool("use_peephole");
  auto arriving = [&](int output) { return c.has_gradient(output) ? c.gradient(output) : Value{}; };
  const Value i = c.output(kI), cs = c.output(kCs), f = c.output(kF), o = c.output(kO),
              ci = c.output(kCi), co = c.output(kCo);
  const Value h = arriving(kH);
  const Value from_co = sum_of_valid(e, arriving(kCo), h.valid() ? e.mul(h, o) : Value{});
  Value d_o = sum_of_valid(e, arriving(kO), h.valid() ? e.mul(h, co) : Value{});
  d_o = through_sigmoid(e, d_o.valid() ? d_o : e.zeros_like(o), o);
  Value d_cs =
      sum_of_valid(e, arriving(kCs), from_co.valid() ? through_tanh(e, from_co, co) : Value{});
  if (peephole) d_cs = sum_of_valid(e, d_cs, e.mul(d_o, c.input(p.wco)));
  if (!d_cs.valid()) d_cs = e.zeros_like(cs);
  if (const double clip = c.op().get_float("cell_clip"); clip > 0) {
    const Value free = e.call("Less", {e.call("Abs", {cs}), e.const_scalar(e.dtype(cs), clip)});
    d_cs = e.call("Select", {free, d_cs, e.const_scalar(e.dtype(cs), 0)});
  }
  GateGradients g;
  g.o = d_o;
  g.i = through_sigmoid(e, sum_of_valid(e, arriving(kI), e.mul(d_cs, ci)), i);
  g.ci = through_tanh(e, sum_of_valid(e, arriving(kCi), e.mul(d_cs, i)), ci);
  g.f = through_sigmoid(e, sum_of_valid(e, arriving(kF), e.mul(d_cs, c.input(p.cs_prev))), f);
  g.cs_prev = e.mul(d_cs, f);
  if (peephole) {
    g.cs_prev = e.add(g.cs_prev, e.add(e.mul(g.i, c.input(p.wci)), e.mul(g.f, c.input(p.wcf))));
  }
  return g;
}

void cell_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Places p(0);
  const GateGradients g = gate_gradients(c, p);
  const Value four[] = {g.i, g.ci, g.f, g.o, e.const_tensor(Tensor::scalar<int32_t>(1))};
  const int sizes[] = {4, 1};
  const Value gates = e.emit("Concat", four, {}, sizes).at(0);
  if (c.needed(p.x) || c.needed(p.h_prev)) {
    const Value both = times_transposed(e, gates, c.input(p.w));
    const Value x_shape = c.input_shape_value(p.x);
    if (c.needed(p.x)) c.set(p.x, left_columns(e, both, x_shape));
    if (c.needed(p.h_prev)) c.set(p.h_prev, right_columns(e, both, x_shape));
  }
  if (c.needed(p.cs_prev)) c.set(p.cs_prev, g.cs_prev);
  if (c.needed(p.w)) {
    c.set(p.w, transposed_times(e, beside(e, c.input(p.x), c.input(p.h_prev)), gates));
  }
  if (c.needed(p.b)) c.set(p.b, sum_of_rows(e, gates));
  if (!c.op().get_bool("use_peephole")) return;
  const Value cs_prev = c.input(p.cs_prev);
  if (c.needed(p.wci)) c.set(p.wci, sum_of_rows(e, e.mul(g.i, cs_prev)));
  if (c.needed(p.wcf)) c.set(p.wcf, sum_of_rows(e, e.mul(g.f, cs_prev)));
  if (c.needed(p.wco)) c.set(p.wco, sum_of_rows(e, e.mul(g.o, c.output(kCs))));
}

// --- The gradient of a sequence
// -------------------------------------------------------------------

void sequence_gradient(GradientContext& c) {
  const Places p(1);
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < kOutputs; ++i) inputs.push_back(c.output(i));
  for (const Output output : {kCs, kH})
    inputs.push_back(c.has_gradient(output) ? c.gradient(output)
                                            : no_elements(c.e, c.output(output)));
  constexpr Output gates[] = {kI, kF, kO, kCi, kCo};
  bool any = false;
  for (const Output gate : gates) any |= c.has_gradient(gate);
  for (const Output gate : gates) {
    if (any) inputs.push_back(c.gradient(gate));
  }
  std::vector<int> sizes(p.b + 1 + kOutputs + 2, 1);
  sizes.push_back(any ? 5 : 0);
  const std::vector<Value> result = c.e.emit("BlockLSTMGrad", inputs,
                                             {{"use_peephole", c.op().attr("use_peephole")},
                                              {"cell_clip", c.op().attr("cell_clip")},
                                              {"input_gradient", c.needed(p.x)},
                                              {"T", c.op().attr("T")}},
                                             sizes);
  const bool peephole = c.op().get_bool("use_peephole");
  for (int i = p.x; i <= p.b; ++i) {
    if (!peephole && (i == p.wci || i == p.wcf || i == p.wco)) continue;
    if (c.needed(i)) c.set(i, result.at(i - p.x));
  }
}

void second_gradient(GradientContext&) {
  throw unimplemented(
      "a sequence's gradient has no gradient of its own; unroll LSTMBlockCell (static_rnn), which "
      "has gradients of any order");
}

constexpr char kStep[] =
    "[i, ci, f, o] = [x, h_prev] w + b; i = sigmoid(i + cs_prev wci); f = sigmoid(f + cs_prev wcf "
    "+ forget_bias); ci = tanh(ci);\n"
    "cs = i ci + f cs_prev, clipped to [-cell_clip, cell_clip] where cell_clip > 0; o = sigmoid(o "
    "+ cs wco); co = tanh(cs); h = o co\n\n"
    "w is [input + cell, 4 cell], b [4 cell], both with the columns of i, ci, f and o in this "
    "order; wci, wcf and wco are [cell], and without use_peephole they are not read and may have "
    "any length. Every output passes gradients on; where the state is clipped, none passes "
    "through it.\n"
    "Source: Hochreiter and Schmidhuber, Long short-term memory, 1997; Gers, Schmidhuber and "
    "Cummins, Learning to forget, 2000 (f), Gers, Schraudolph and Schmidhuber, Learning precise "
    "timing, 2002 (peepholes).\n";

void add_layer_inputs(OpDeclaration& op) {
  for (const char* input :
       {"x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"}) {
    op.input(input);
  }
}
void add_layer_outputs(OpDeclaration& op) {
  for (const char* output : {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"})
    op.output(output);
  op.attr("forget_bias: float = 1.0").attr("cell_clip: float = 3.0");
  op.attr("use_peephole: bool = false").attr(kTypes);
}

void declare_sequence_grad(OpRegistry& r) {
  OpDeclaration op = r.op("BlockLSTMGrad", HostAccess::kNone);
  op.input("seq_len_max: int64");
  add_layer_inputs(op);
  for (const char* input : {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T", "cs_grad: T",
                            "h_grad: T", "gate_grads: N * T"}) {
    op.input(input);
  }
  for (const char* output : {"x_grad: T", "cs_prev_grad: T", "h_prev_grad: T", "w_grad: T",
                             "wci_grad: T", "wcf_grad: T", "wco_grad: T", "b_grad: T"}) {
    op.output(output);
  }
  op.attr("use_peephole: bool").attr("cell_clip: float = -1.0");
  op.attr("input_gradient: bool = true").attr("N: int >= 0 = 0").attr(kTypes);
  op.shape(sequence_grad_shape).flops(layer_flops).gradient(second_gradient);
  op.doc(
      "Computes the gradients of BlockLSTM.\n\n"
      "The first inputs are its own, i to h its outputs, cs_grad and h_grad the gradients of two "
      "of them, each empty, [0], where it is zero; gate_grads those of i, f, o, ci and co, or "
      "nothing. cell_clip is its own; without "
      "it (or <= 0) gradients pass clipped states as if they were not. Without use_peephole the "
      "gradients of wci, wcf and wco are zero; without input_gradient x_grad is empty, [0].\n"
      "Errors: as BlockLSTM. Its own gradient is Unimplemented.");
}

}  // namespace

void register_lstm_ops(OpRegistry& r) {
  OpDeclaration cell = r.op("LSTMBlockCell", HostAccess::kNone);
  add_layer_inputs(cell);
  add_layer_outputs(cell);
  cell.shape(cell_shape)
      .flops(layer_flops)
      .gradient(cell_gradient, {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "i", "cs", "f",
                                "o", "ci", "co"})
      .doc(concat("One step of a layer of long short-term memory.\n\n", kStep,
                  "x is [batch, input]; states and outputs are [batch, cell].\n"
                  "Errors: InvalidArgument for shapes that do not agree."));

  OpDeclaration sequence = r.op("BlockLSTM", HostAccess::kNone);
  sequence.input("seq_len_max: int64");
  add_layer_inputs(sequence);
  add_layer_outputs(sequence);
  sequence.shape(sequence_shape)
      .flops(layer_flops)
      .gradient(sequence_gradient, {"seq_len_max", "x", "cs_prev", "h_prev", "w", "wci", "wcf",
                                    "wco", "b", "i", "cs", "f", "o", "ci", "co", "h"})
      .doc(concat("A layer of long short-term memory over a sequence.\n\n", kStep,
                  "x is [time, batch, input], outputs are [time, batch, cell]; cs_prev and h_prev, "
                  "[batch, cell], are the state before the first step. Steps from seq_len_max on "
                  "are not computed, and their outputs zero.\n"
                  "Errors: InvalidArgument for shapes that do not agree, or seq_len_max outside "
                  "[0, time]."));
  declare_sequence_grad(r);
  r.finish("lstm");
}

}  // namespace treenail
