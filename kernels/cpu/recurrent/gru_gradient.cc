// SPDX-License-Identifier: Apache-2.0
// BlockGRUGrad (framework/ops/gru.cc): backwards through the steps, piece by piece of the batch,
// what arrives at the gates is kept for all of them; the gradients of weights, biases and input
// are then products and sums over all rows. Forward: gru.cc.
#include "framework/runtime/kernel/kernel_poll.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/cpu/recurrent/gru.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::cpu {
namespace {

using enum host::GruResult;

template <class C>
struct GruBackward {
  const LayerExtents& e;
  const GruInputs<C>& in;
  const C* out[kGruOutputs];       // of the forward op
  const C* arriving[kGruOutputs];  // their gradients; null where none is given
  C* result[kGruResults];
  C* d_ru;     // [rows, 2 * cell]: what arrives at r and u before their nonlinearities
  C* d_c;      // [rows, cell]: the same of c
  C* reset;    // [rows, cell]: r * state before the step
  C* d_reset;  // [batch, cell]: what arrives there
  StepMatrix<C> state_ru, state_c;  // transposed

  void run(RunContext& c, int64_t steps) const {
    const StepMatrix<C> both[] = {state_ru, state_c};
    pack_matrices(c, std::span<const StepMatrix<C>>(both));
    const BatchPieces pieces(e.batch);
    const double cost = static_cast<double>(steps) * static_cast<double>(e.batch) *
                        (product_cost_ns<C>(1, e.cell, 3 * e.cell) + 2.0 * e.cell);
    c.run_chunks(pieces.count, cost, [&](int64_t piece) {
      const int64_t row = pieces.begin(piece), rows = pieces.size(piece);
      C* const d_h = result[kGruHPrevGrad] + row * e.cell;
      std::fill_n(d_h, rows * e.cell, C(0));
      for (int64_t step = steps - 1; step >= 0; --step) {
        poll(c);
        const int64_t first = step * e.batch + row;
        sweep(step, row, rows, [&](auto... of_units) { candidate_units(of_units...); });
        for (int64_t panel = 0; panel < state_c.num_panels(); ++panel) {
          state_c.multiply(panel, rows, d_c + first * e.cell, e.cell, d_reset + row * e.cell,
                           e.cell, false);
        }
        sweep(step, row, rows, [&](auto... of_units) { reset_units(of_units...); });
        for (int64_t panel = 0; panel < state_ru.num_panels(); ++panel) {
          state_ru.multiply(panel, rows, d_ru + first * 2 * e.cell, 2 * e.cell, d_h, e.cell, true);
        }
      }
    });
    weights(c, steps);
  }

 private:
  template <class F>
  TN_INLINE void sweep(int64_t step, int64_t row, int64_t rows, F f) const {
    for (int64_t r = row; r < row + rows; ++r)
      for_units<C>(0, e.cell, [&](int64_t j, auto n) { f(step, r, j, n); });
  }
  template <class N>
  TN_INLINE Vec<C> given(GruOutput k, int64_t at, N n) const {
    return arriving[k] != nullptr ? load_some(arriving[k] + at, n) : Vec<C>{};
  }
  template <class N>
  TN_INLINE Vec<C> state_before(int64_t step, int64_t at, int64_t state, N n) const {
    return load_some(step > 0 ? out[kGruH] + at - e.batch * e.cell : in.h_prev + state, n);
  }

  // From h to c and u: n units from j on, of one row. What goes straight to the state before is
  // left in its gradient.
  template <class N>
  TN_INLINE void candidate_units(int64_t step, int64_t row, int64_t j, N n) const {
    using V = Vec<C>;
    const int64_t at = (step * e.batch + row) * e.cell + j, state = row * e.cell + j;
    const V u = load_some(out[kGruU] + at, n), candidate = load_some(out[kGruC] + at, n);
    const V d_h = given(kGruH, at, n) + load_some(result[kGruHPrevGrad] + state, n);
    const V before = state_before(step, at, state, n);
    const auto from = elementwise::gru_candidate_gradient(u, candidate, before, d_h,
                                                          given(kGruC, at, n), given(kGruU, at, n));
    store_some(d_c + at, from.c, n);
    store_some(d_ru + (step * e.batch + row) * 2 * e.cell + e.cell + j, from.u, n);
    store_some(result[kGruHPrevGrad] + state, from.before, n);
  }

  // From r * state to both.
  template <class N>
  TN_INLINE void reset_units(int64_t step, int64_t row, int64_t j, N n) const {
    using V = Vec<C>;
    const int64_t at = (step * e.batch + row) * e.cell + j, state = row * e.cell + j;
    const V r = load_some(out[kGruR] + at, n), d = load_some(d_reset + state, n);
    const V before = state_before(step, at, state, n);
    const V to_r = given(kGruR, at, n) + d * before;
    store_some(d_ru + (step * e.batch + row) * 2 * e.cell + j,
               elementwise::through_sigmoid(to_r, r), n);
    store_some(reset + at, r * before, n);
    store_some(result[kGruHPrevGrad] + state, load_some(result[kGruHPrevGrad] + state, n) + d * r,
               n);
  }

  void weights(RunContext& c, int64_t steps) const {
    const int64_t rows = steps * e.batch;
    weights_gradient(c, e, steps, 2 * e.cell, in.x, in.h_prev, out[kGruH], d_ru,
                     result[kGruWRuGrad]);
    Product<C> of_c[2];
    for (int i = 0; i < 2; ++i) {
      Product<C>& p = of_c[i];
      p.m = p.lda = i == 0 ? e.input : e.cell;
      p.n = p.ldb = p.ldc = e.cell;
      p.k = rows;
      p.trans_a = true;
      p.a = i == 0 ? in.x : reset;
      p.b = d_c;
      p.c = result[kGruWCGrad] + (i == 0 ? 0 : e.input * e.cell);
    }
    multiply_on_pool(c, std::span<const Product<C>>(of_c));
    sum_columns(c, ColumnSum<C>{rows, 2 * e.cell, d_ru, 2 * e.cell, result[kGruBRuGrad]});
    sum_columns(c, ColumnSum<C>{rows, e.cell, d_c, e.cell, result[kGruBCGrad]});
    if (result[kGruXGrad] == nullptr) return;
    Product<C> to_x;
    to_x.m = rows;
    to_x.n = to_x.ldc = e.input;
    to_x.k = to_x.lda = to_x.ldb = 2 * e.cell;
    to_x.trans_b = true;
    to_x.a = d_ru;
    to_x.b = in.w_ru;
    to_x.c = result[kGruXGrad];
    multiply_on_pool(c, std::span<const Product<C>>(&to_x, 1));
    to_x.k = to_x.lda = to_x.ldb = e.cell;
    to_x.a = d_c;
    to_x.b = in.w_c;
    to_x.add_to_c = true;
    multiply_on_pool(c, std::span<const Product<C>>(&to_x, 1));
    zero_from(c, result[kGruXGrad], rows * e.input, e.rows() * e.input);
  }
};

}  // namespace

template <class C>
std::unique_ptr<Kernel> prepare_gru_gradient(const PrepareContext& p) {
  const GruPlan plan(p);
  ScratchLayout layout;
  const ComputedArrays<C> arrays(p, layout);
  if (plan.e.empty()) return zero_gradients<C>(p, arrays, layout, plan.e.time);
  const LayerExtents e = plan.e;
  const bool pack = e.time > 1, input_gradient = p.op().get_bool("input_gradient");
  const int outputs = plan.first + 6, gate_gradients = outputs + kGruOutputs + 1;
  const bool gates_given = p.num_inputs() > gate_gradients;
  auto panels = [&](int64_t depth) {
    return layout.take<C>(pack ? StepMatrix<C>::packed_elements(depth, e.cell) : 0);
  };
  const size_t packed_ru = panels(2 * e.cell), packed_c = panels(e.cell);
  const size_t d_ru = layout.take<C>(e.rows(), 2 * e.cell);
  const size_t d_c = layout.take<C>(e.rows(), e.cell), reset = layout.take<C>(e.rows(), e.cell);
  const size_t d_reset = layout.take<C>(e.batch, e.cell);
  const double cost =
      2 * static_cast<double>(e.rows()) * product_cost_ns<C>(1, 3 * e.cell, e.input + e.cell);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t steps = steps_of(c, true, e.time);
        const GruInputs<C> in(c, plan, arrays);
        auto at = [&](size_t offset) { return reinterpret_cast<C*>(c.scratch() + offset); };
        GruBackward<C> layer{e, in, {}, {}, {}, at(d_ru), at(d_c), at(reset), at(d_reset), {}, {}};
        for (int i = 0; i < kGruOutputs; ++i) layer.out[i] = arrays.input(c, outputs + i);
        layer.arriving[kGruH] = arrays.input(c, outputs + kGruOutputs);
        for (int i = 0; i < 3 && gates_given; ++i)
          layer.arriving[kGruR + i] = arrays.input(c, gate_gradients + i);
        for (int i = 0; i < kGruResults; ++i) layer.result[i] = arrays.output(c, i);
        if (!input_gradient) layer.result[kGruXGrad] = nullptr;
        layer.state_ru = {2 * e.cell, e.cell, in.state_ru(e),
                          2 * e.cell, true,   pack ? at(packed_ru) : nullptr};
        layer.state_c = {e.cell, e.cell, in.state_c(e),
                         e.cell, true,   pack ? at(packed_c) : nullptr};
        layer.run(c, steps);
        arrays.finish(c);
      },
      cost, layout.bytes());
}

template std::unique_ptr<Kernel> prepare_gru_gradient<float>(const PrepareContext&);
template std::unique_ptr<Kernel> prepare_gru_gradient<double>(const PrepareContext&);

}  // namespace treenail::cpu
