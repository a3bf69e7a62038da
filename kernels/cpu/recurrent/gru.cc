// SPDX-License-Identifier: Apache-2.0
// GRUBlockCell and BlockGRU (framework/ops/gru.cc). The input's part of all gates of all steps is
// one product, left in the gates' own outputs. A step multiplies twice: the state for r and u, then
// r * state for c. How rows and steps are driven: recurrence.h. Backward: gru_gradient.cc.
#include "kernels/cpu/recurrent/gru.h"

#include "framework/runtime/kernel/kernel_poll.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::cpu {
namespace {

template <class C>
struct GruForward {
  const LayerExtents& e;
  const GruInputs<C>& in;
  C* const* out;                   // [kGruOutputs]
  C* reset;                        // [batch, cell]: r * state before the step
  StepMatrix<C> state_weights[3];  // of r, u and c

  GruForward(const LayerExtents& e, const GruInputs<C>& in, C* const* out, C* reset, C* packed)
      : e(e), in(in), out(out), reset(reset) {
    const int64_t each = StepMatrix<C>::packed_elements(e.cell, e.cell);
    auto panels = [&](int i) { return packed != nullptr ? packed + i * each : nullptr; };
    const C* ru = in.state_ru(e);
    state_weights[kGruR] = {e.cell, e.cell, ru, 2 * e.cell, false, panels(0)};
    state_weights[kGruU] = {e.cell, e.cell, ru + e.cell, 2 * e.cell, false, panels(1)};
    state_weights[kGruC] = {e.cell, e.cell, in.state_c(e), e.cell, false, panels(2)};
  }

  void run(RunContext& c, int64_t steps) const {
    Product<C> of_x[3];
    for (int gate = 0; gate < 3; ++gate) {
      Product<C>& p = of_x[gate];
      p.m = steps * e.batch;
      p.n = p.ldc = e.cell;
      p.k = p.lda = e.input;
      p.a = in.x;
      p.b = gate == kGruC ? in.w_c : in.w_ru + gate * e.cell;
      p.ldb = state_weights[gate].ld;
      p.c = out[gate];
    }
    multiply_on_pool(c, std::span<const Product<C>>(of_x));
    pack_matrices(c, std::span<const StepMatrix<C>>(state_weights));
    const BatchPieces pieces(e.batch);
    const double cost = static_cast<double>(steps) * static_cast<double>(e.batch) *
                        (product_cost_ns<C>(1, 3 * e.cell, e.cell) + 3.0 * e.cell);
    c.run_chunks(pieces.count, cost, [&](int64_t piece) {
      for (int64_t step = 0; step < steps; ++step) {
        poll(c);
        run_step(step, pieces.begin(piece), pieces.size(piece));
      }
    });
  }

 private:
  void run_step(int64_t step, int64_t row, int64_t rows) const {
    const int64_t at = (step * e.batch + row) * e.cell, state = row * e.cell;
    const C* h = step > 0 ? out[kGruH] + at - e.batch * e.cell : in.h_prev + state;
    auto product = [&](GruOutput gate, int64_t panel, const C* a) {
      state_weights[gate].multiply(panel, rows, a, e.cell, out[gate] + at, e.cell, true);
      const int64_t first = panel * StepMatrix<C>::kWidth;
      return std::pair{first, first + state_weights[gate].panel_columns(panel)};
    };
    const int64_t panels = state_weights[kGruR].num_panels();
    for (int64_t panel = 0; panel < panels; ++panel) {
      const auto [first, last] = product(kGruR, panel, h);
      for_units<C>(first, last, [&](int64_t j, auto n) { reset_units(rows, at, state, h, j, n); });
    }
    for (int64_t panel = 0; panel < panels; ++panel) {
      product(kGruU, panel, h);
      const auto [first, last] = product(kGruC, panel, reset + state);
      for_units<C>(first, last, [&](int64_t j, auto n) { output_units(rows, at, h, j, n); });
    }
  }

  // n units from j on, of `rows` rows.
  template <class N>
  TN_INLINE void reset_units(int64_t rows, int64_t at, int64_t state, const C* h, int64_t j,
                             N n) const {
    const Vec<C> bias = load_some(in.b_ru + j, n);
    for (int64_t i = j; i < rows * e.cell; i += e.cell) {
      const Vec<C> r = sigmoid(load_some(out[kGruR] + at + i, n) + bias);
      store_some(out[kGruR] + at + i, r, n);
      store_some(reset + state + i, r * load_some(h + i, n), n);
    }
  }
  template <class N>
  TN_INLINE void output_units(int64_t rows, int64_t at, const C* h, int64_t j, N n) const {
    const Vec<C> bias_u = load_some(in.b_ru + e.cell + j, n), bias_c = load_some(in.b_c + j, n);
    for (int64_t i = j; i < rows * e.cell; i += e.cell) {
      const Vec<C> u = sigmoid(load_some(out[kGruU] + at + i, n) + bias_u);
      const Vec<C> candidate = tanh(load_some(out[kGruC] + at + i, n) + bias_c);
      store_some(out[kGruU] + at + i, u, n);
      store_some(out[kGruC] + at + i, candidate, n);
      store_some(out[kGruH] + at + i, elementwise::gru_state(u, load_some(h + i, n), candidate), n);
    }
  }
};

template <class C>
std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
  const GruPlan plan(p);
  if (plan.e.empty()) {
    return make_kernel([plan](RunContext& c) { steps_of(c, plan.sequence, plan.e.time); });
  }
  ScratchLayout layout;
  const ComputedArrays<C> arrays(p, layout);
  const LayerExtents e = plan.e;
  const bool pack = e.time > 1;
  const size_t packed =
      pack ? layout.take<C>(3, StepMatrix<C>::packed_elements(e.cell, e.cell)) : 0;
  const size_t reset = layout.take<C>(e.batch, e.cell);
  const double cost =
      static_cast<double>(e.rows()) * product_cost_ns<C>(1, 3 * e.cell, e.input + e.cell);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t steps = steps_of(c, plan.sequence, e.time);
        const GruInputs<C> in(c, plan, arrays);
        C* out[kGruOutputs];
        for (int i = 0; i < kGruOutputs; ++i) {
          out[i] = arrays.output(c, i);
          zero_from(c, out[i], steps * e.batch * e.cell, e.rows() * e.cell);
        }
        auto at = [&](size_t offset) { return reinterpret_cast<C*>(c.scratch() + offset); };
        const GruForward<C> layer(e, in, out, at(reset), pack ? at(packed) : nullptr);
        layer.run(c, steps);
        arrays.finish(c);
      },
      cost, layout.bytes());
}

}  // namespace

void register_gru_kernels(KernelRegistry& r) {
  for (const char* op : {"GRUBlockCell", "BlockGRU"})
    add_recurrent(r, op, prepare<float>, prepare<double>);
  add_recurrent(r, "BlockGRUGrad", prepare_gru_gradient<float>, prepare_gru_gradient<double>);
}

}  // namespace treenail::cpu
