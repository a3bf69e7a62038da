// SPDX-License-Identifier: Apache-2.0
// LSTMBlockCell and BlockLSTM (framework/ops/lstm.cc). The input's part of all gates of all steps
// is one product, left in the gates' own outputs; each step then adds the state's part there, and
// the nonlinearities follow block by block of units while the sums are in L1. How rows and steps
// are driven: recurrence.h. Backward: lstm_gradient.cc.
#include "kernels/cpu/recurrent/lstm.h"

#include "framework/runtime/kernel/kernel_poll.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::cpu {
namespace {

template <class C>
struct LstmForward {
  const LayerExtents& e;
  const LstmInputs<C>& in;
  C* const* out;  // [kLstmOutputs]
  C forget_bias, cell_clip;
  StepMatrix<C> state_weights[4];

  LstmForward(const LayerExtents& e, const LstmInputs<C>& in, C* const* out, C* packed)
      : e(e), in(in), out(out) {
    const int64_t each = StepMatrix<C>::packed_elements(e.cell, e.cell);
    for (int gate = 0; gate < 4; ++gate) {
      state_weights[gate] = {
          e.cell,     e.cell, in.state_weights(e) + gate * e.cell,
          4 * e.cell, false,  packed != nullptr ? packed + gate * each : nullptr};
    }
  }

  void run(RunContext& c, int64_t steps) const {
    Product<C> of_x[4];
    for (int gate = 0; gate < 4; ++gate) {
      Product<C>& p = of_x[gate];
      p.m = steps * e.batch;
      p.n = p.ldc = e.cell;
      p.k = p.lda = e.input;
      p.a = in.x;
      p.b = in.w + gate * e.cell;
      p.ldb = 4 * e.cell;
      p.c = out[kLstmGates[gate]];
    }
    multiply_on_pool(c, std::span<const Product<C>>(of_x));
    pack_matrices(c, std::span<const StepMatrix<C>>(state_weights));
    const BatchPieces pieces(e.batch);
    const double cost = static_cast<double>(steps) * static_cast<double>(e.batch) *
                        (product_cost_ns<C>(1, 4 * e.cell, e.cell) + 4.0 * e.cell);
    c.run_chunks(pieces.count, cost, [&](int64_t piece) {
      for (int64_t step = 0; step < steps; ++step) {
        poll(c);
        if (in.wci != nullptr) {
          run_step<true>(step, pieces.begin(piece), pieces.size(piece));
        } else {
          run_step<false>(step, pieces.begin(piece), pieces.size(piece));
        }
      }
    });
  }

 private:
  template <bool kPeephole>
  void run_step(int64_t step, int64_t row, int64_t rows) const {
    const int64_t at = (step * e.batch + row) * e.cell;
    const int64_t before = at - e.batch * e.cell;
    const C* h = step > 0 ? out[kLstmH] + before : in.h_prev + row * e.cell;
    const C* cs = step > 0 ? out[kLstmCs] + before : in.cs_prev + row * e.cell;
    for (int64_t panel = 0; panel < state_weights[0].num_panels(); ++panel) {
      for (int gate = 0; gate < 4; ++gate) {
        state_weights[gate].multiply(panel, rows, h, e.cell, out[kLstmGates[gate]] + at, e.cell,
                                     true);
      }
      const int64_t first = panel * StepMatrix<C>::kWidth;
      for_units<C>(first, first + state_weights[0].panel_columns(panel),
                   [&](int64_t j, auto n) { units<kPeephole>(rows, at + j, cs + j, j, n); });
    }
  }

  // n units from j on, of `rows` rows: the sums in the gates' outputs become the step's outputs.
  template <bool kPeephole, class N>
  TN_INLINE void units(int64_t rows, int64_t at, const C* cs_prev, int64_t j, N n) const {
    using V = Vec<C>;
    const V bias_i = load_some(in.b + j, n), bias_ci = load_some(in.b + e.cell + j, n);
    const V bias_f = load_some(in.b + 2 * e.cell + j, n) + splat<V>(forget_bias);
    const V bias_o = load_some(in.b + 3 * e.cell + j, n);
    elementwise::LstmPeepholes<V> peepholes{};
    if constexpr (kPeephole)
      peepholes = {load_some(in.wci + j, n), load_some(in.wcf + j, n), load_some(in.wco + j, n)};
    for (int64_t r = 0; r < rows; ++r, at += e.cell, cs_prev += e.cell) {
      auto sum = [&](LstmOutput gate) { return load_some(out[gate] + at, n); };
      const elementwise::LstmGates<V> sums = {sum(kLstmI) + bias_i, sum(kLstmCi) + bias_ci,
                                              sum(kLstmF) + bias_f, sum(kLstmO) + bias_o};
      const auto y =
          elementwise::lstm_unit<kPeephole>(sums, load_some(cs_prev, n), peepholes, cell_clip);
      store_some(out[kLstmI] + at, y.i, n);
      store_some(out[kLstmCs] + at, y.cs, n);
      store_some(out[kLstmF] + at, y.f, n);
      store_some(out[kLstmO] + at, y.o, n);
      store_some(out[kLstmCi] + at, y.ci, n);
      store_some(out[kLstmCo] + at, y.co, n);
      store_some(out[kLstmH] + at, y.h, n);
    }
  }
};

template <class C>
std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
  const LstmPlan plan(p);
  if (plan.e.empty()) {
    return make_kernel([plan](RunContext& c) { steps_of(c, plan.sequence, plan.e.time); });
  }
  ScratchLayout layout;
  const ComputedArrays<C> arrays(p, layout);
  const LayerExtents e = plan.e;
  const bool pack = e.time > 1;
  const size_t packed =
      pack ? layout.take<C>(4, StepMatrix<C>::packed_elements(e.cell, e.cell)) : 0;
  const C forget_bias = static_cast<C>(p.op().get_float("forget_bias"));
  const C cell_clip = static_cast<C>(p.op().get_float("cell_clip"));
  const double cost =
      static_cast<double>(e.rows()) * product_cost_ns<C>(1, 4 * e.cell, e.input + e.cell);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t steps = steps_of(c, plan.sequence, e.time);
        const LstmInputs<C> in(c, plan, arrays);
        C* out[kLstmOutputs];
        for (int i = 0; i < kLstmOutputs; ++i) {
          out[i] = arrays.output(c, i);
          zero_from(c, out[i], steps * e.batch * e.cell, e.rows() * e.cell);
        }
        LstmForward<C> layer(e, in, out,
                             pack ? reinterpret_cast<C*>(c.scratch() + packed) : nullptr);
        layer.forget_bias = forget_bias;
        layer.cell_clip = cell_clip;
        layer.run(c, steps);
        arrays.finish(c);
      },
      cost, layout.bytes());
}

}  // namespace

void register_lstm_kernels(KernelRegistry& r) {
  for (const char* op : {"LSTMBlockCell", "BlockLSTM"})
    add_recurrent(r, op, prepare<float>, prepare<double>);
  add_recurrent(r, "BlockLSTMGrad", prepare_lstm_gradient<float>, prepare_lstm_gradient<double>);
}

}  // namespace treenail::cpu
