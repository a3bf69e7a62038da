// SPDX-License-Identifier: Apache-2.0
// BlockLSTMGrad (framework/ops/lstm.cc): backwards through the steps, piece by piece of the batch,
// what arrives at the gates is kept for all of them; the gradients of weights, biases and input
// are then products and sums over all rows. Forward: lstm.cc.
#include "framework/runtime/kernel/kernel_poll.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/cpu/recurrent/lstm.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::cpu {
namespace {

using host::kLstmGateGradients;
using enum host::LstmResult;

template <class C>
struct LstmBackward {
  const LayerExtents& e;
  const LstmInputs<C>& in;
  const C* out[kLstmOutputs];       // of the forward op
  const C* arriving[kLstmOutputs];  // their gradients; null where none is given
  C* result[kLstmResults];
  C* gates;  // [rows, 4 * cell]: what arrives at i, ci, f and o before their nonlinearities
  C cell_clip;
  StepMatrix<C> state_weights;  // transposed

  void run(RunContext& c, int64_t steps) const {
    pack_matrices(c, std::span<const StepMatrix<C>>(&state_weights, 1));
    const BatchPieces pieces(e.batch);
    const double cost = static_cast<double>(steps) * static_cast<double>(e.batch) *
                        (product_cost_ns<C>(1, e.cell, 4 * e.cell) + 2.0 * e.cell);
    c.run_chunks(pieces.count, cost, [&](int64_t piece) {
      const int64_t row = pieces.begin(piece), rows = pieces.size(piece);
      // The state's gradients, from step to step: what remains is that of the first state.
      C* const d_cs = result[kLstmCsPrevGrad] + row * e.cell;
      C* const d_h = result[kLstmHPrevGrad] + row * e.cell;
      std::fill_n(d_cs, rows * e.cell, C(0));
      std::fill_n(d_h, rows * e.cell, C(0));
      for (int64_t step = steps - 1; step >= 0; --step) {
        poll(c);
        for (int64_t r = row; r < row + rows; ++r) {
          for_units<C>(0, e.cell, [&](int64_t j, auto n) {
            if (in.wci != nullptr) {
              units<true>(step, r, j, n);
            } else {
              units<false>(step, r, j, n);
            }
          });
        }
        const C* d = gates + (step * e.batch + row) * 4 * e.cell;
        for (int64_t panel = 0; panel < state_weights.num_panels(); ++panel)
          state_weights.multiply(panel, rows, d, 4 * e.cell, d_h, e.cell, false);
      }
    });
    weights(c, steps);
  }

 private:
  // n units from j on, of one row.
  template <bool kPeephole, class N>
  TN_INLINE void units(int64_t step, int64_t row, int64_t j, N n) const {
    using V = Vec<C>;
    const int64_t at = (step * e.batch + row) * e.cell + j, state = row * e.cell + j;
    auto value = [&](LstmOutput k) { return load_some(out[k] + at, n); };
    auto given = [&](LstmOutput k) {
      return arriving[k] != nullptr ? load_some(arriving[k] + at, n) : V{};
    };
    const V before =
        load_some(step > 0 ? out[kLstmCs] + at - e.batch * e.cell : in.cs_prev + state, n);
    elementwise::LstmPeepholes<V> peepholes{};
    if constexpr (kPeephole)
      peepholes = {load_some(in.wci + j, n), load_some(in.wcf + j, n), load_some(in.wco + j, n)};
    const auto from = elementwise::lstm_gradient<kPeephole>(
        {value(kLstmI), value(kLstmCs), value(kLstmF), value(kLstmO), value(kLstmCi),
         value(kLstmCo), V{}},
        {given(kLstmI), given(kLstmCs) + load_some(result[kLstmCsPrevGrad] + state, n),
         given(kLstmF), given(kLstmO), given(kLstmCi), given(kLstmCo),
         given(kLstmH) + load_some(result[kLstmHPrevGrad] + state, n)},
        before, peepholes, cell_clip);
    store_some(result[kLstmCsPrevGrad] + state, from.before, n);
    C* const d = gates + (step * e.batch + row) * 4 * e.cell + j;
    store_some(d, from.gates.i, n);
    store_some(d + e.cell, from.gates.ci, n);
    store_some(d + 2 * e.cell, from.gates.f, n);
    store_some(d + 3 * e.cell, from.gates.o, n);
  }

  void weights(RunContext& c, int64_t steps) const {
    const int64_t rows = steps * e.batch, width = 4 * e.cell;
    weights_gradient(c, e, steps, width, in.x, in.h_prev, out[kLstmH], gates, result[kLstmWGrad]);
    if (result[kLstmXGrad] != nullptr) {
      Product<C> p;
      p.m = rows;
      p.n = p.ldc = e.input;
      p.k = p.lda = p.ldb = width;
      p.trans_b = true;
      p.a = gates;
      p.b = in.w;
      p.c = result[kLstmXGrad];
      multiply_on_pool(c, std::span<const Product<C>>(&p, 1));
      zero_from(c, result[kLstmXGrad], rows * e.input, e.rows() * e.input);
    }
    sum_columns(c, ColumnSum<C>{rows, width, gates, width, result[kLstmBGrad]});
    if (in.wci != nullptr) peepholes(c, steps);
  }

  void peepholes(RunContext& c, int64_t steps) const {
    const int64_t rows = steps * e.batch, width = 4 * e.cell;
    // The states before each step: cs_prev, then those after the steps before.
    for (const auto& [result_index, gate] :
         {std::pair{kLstmWciGrad, 0}, std::pair{kLstmWcfGrad, 2}}) {
      const C* d = gates + gate * e.cell;
      C* const total = result[result_index];
      const int64_t first = std::min(rows, e.batch);
      sum_columns(c, ColumnSum<C>{first, e.cell, d, width, total, in.cs_prev, e.cell});
      sum_columns(c, ColumnSum<C>{rows - first, e.cell, d + first * width, width, total,
                                  out[kLstmCs], e.cell, true});
    }
    sum_columns(c, ColumnSum<C>{rows, e.cell, gates + 3 * e.cell, width, result[kLstmWcoGrad],
                                out[kLstmCs], e.cell});
  }
};

}  // namespace

template <class C>
std::unique_ptr<Kernel> prepare_lstm_gradient(const PrepareContext& p) {
  const LstmPlan plan(p);
  ScratchLayout layout;
  const ComputedArrays<C> arrays(p, layout);
  if (plan.e.empty()) return zero_gradients<C>(p, arrays, layout, plan.e.time);
  const LayerExtents e = plan.e;
  const bool pack = e.time > 1, input_gradient = p.op().get_bool("input_gradient");
  const int outputs = plan.first + 8, gate_gradients = outputs + kLstmOutputs + 2;
  const bool gates_given = p.num_inputs() > gate_gradients;
  const size_t packed =
      layout.take<C>(pack ? StepMatrix<C>::packed_elements(4 * e.cell, e.cell) : 0);
  const size_t gates = layout.take<C>(e.rows(), 4 * e.cell);
  const C cell_clip = static_cast<C>(p.op().get_float("cell_clip"));
  const int64_t peepholes[] = {p.output_shape(kLstmWciGrad).num_elements(),
                               p.output_shape(kLstmWcfGrad).num_elements(),
                               p.output_shape(kLstmWcoGrad).num_elements()};
  const double cost =
      2 * static_cast<double>(e.rows()) * product_cost_ns<C>(1, 4 * e.cell, e.input + e.cell);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t steps = steps_of(c, true, e.time);
        const LstmInputs<C> in(c, plan, arrays);
        LstmBackward<C> layer{e,         in, {}, {}, {}, reinterpret_cast<C*>(c.scratch() + gates),
                              cell_clip, {}};
        for (int i = 0; i < kLstmOutputs; ++i) layer.out[i] = arrays.input(c, outputs + i);
        layer.arriving[kLstmCs] = arrays.input(c, outputs + kLstmOutputs);
        layer.arriving[kLstmH] = arrays.input(c, outputs + kLstmOutputs + 1);
        for (int i = 0; i < 5 && gates_given; ++i)
          layer.arriving[kLstmGateGradients[i]] = arrays.input(c, gate_gradients + i);
        for (int i = 0; i < kLstmResults; ++i) layer.result[i] = arrays.output(c, i);
        if (!input_gradient) layer.result[kLstmXGrad] = nullptr;
        for (int i = 0; i < 3; ++i) zero_from(c, layer.result[kLstmWciGrad + i], 0, peepholes[i]);
        layer.state_weights = {
            4 * e.cell, e.cell, in.state_weights(e),
            4 * e.cell, true,   pack ? reinterpret_cast<C*>(c.scratch() + packed) : nullptr};
        layer.run(c, steps);
        arrays.finish(c);
      },
      cost, layout.bytes());
}

template std::unique_ptr<Kernel> prepare_lstm_gradient<float>(const PrepareContext&);
template std::unique_ptr<Kernel> prepare_lstm_gradient<double>(const PrepareContext&);

}  // namespace treenail::cpu
