// SPDX-License-Identifier: Apache-2.0
// Steps of gated recurrent units beside their products, a unit of a row for each thread; the
// formulas are the CPU's (elementwise/recurrent.h). Bound by memory.
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/recurrent/units.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::gpu {

// One of the sums of r and u (part 0; u in the last columns) or of c (1), with its bias.
template <class S>
TN_DEVICE Computed<S> gru_sum(const GruForwardStep& s, int part, int64_t row, int64_t column) {
  using C = Computed<S>;
  const int64_t place = row * (2 - part) * s.layer.cell + column;
  return read<C>(s.of_x[part], place) + read<C>(s.of_h[part], place) + read<S>(s.b[part], column);
}

// Between the two products of a step: r, and what c's product is of.
template <class S>
TN_DEVICE void gru_reset(const GruForwardStep& s) {
  using C = Computed<S>;
  const bool computed = is_computed(s.layer, s.layer.step);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    C r = 0, reset = 0;
    if (computed) {
      r = sigmoid(gru_sum<S>(s, 0, row, unit));
      reset = r * read_kept<S>(s.kept, s.h_before, s.layer.step, at);
    }
    write<S>(s.values[0], at, r);
    write<S>(s.reset, at, reset);
  });
}

template <class S>
TN_DEVICE void gru_state(const GruForwardStep& s) {
  using C = Computed<S>;
  const bool computed = is_computed(s.layer, s.layer.step);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    C u = 0, candidate = 0, h = 0;
    if (computed) {
      u = sigmoid(gru_sum<S>(s, 0, row, s.layer.cell + unit));
      candidate = tanh(gru_sum<S>(s, 1, row, unit));
      const C before = read_kept<S>(s.kept, s.h_before, s.layer.step, at);
      h = elementwise::gru_state(u, before, candidate);
    }
    write<S>(s.values[1], at, u);
    write<S>(s.values[2], at, candidate);
    write<S>(s.values[3], at, h);
    write_kept<S>(s.kept, at, h);
  });
}

// Backward: from h to c and u.
template <class S>
TN_DEVICE void gru_candidate_gradients(const GruGradientStep& s) {
  using C = Computed<S>;
  const int64_t cell = s.layer.cell;
  const bool computed = is_computed(s.layer, s.layer.step), later = has_later(s.layer);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    elementwise::GruCandidateGradient<C> d = {};
    if (computed) {
      const C h = read_if<S>(s.arriving[3], at) +
                  (later ? read<C>(s.d_h, at) + read<C>(s.through_ru, at) : C(0));
      d = elementwise::gru_candidate_gradient(
          read<S>(s.values[1], at), read<S>(s.values[2], at), read<S>(s.h_before, at), h,
          read_if<S>(s.arriving[2], at), read_if<S>(s.arriving[1], at));
    }
    write<S>(s.d_c, at, d.c);
    write<S>(s.d_ru, row * 2 * cell + cell + unit, d.u);
    write<C>(s.d_h, at, d.before);
  });
}

// From r * state to both.
template <class S>
TN_DEVICE void gru_reset_gradients(const GruGradientStep& s) {
  using C = Computed<S>;
  const int64_t cell = s.layer.cell;
  const bool computed = is_computed(s.layer, s.layer.step);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    C to_r = 0, reset = 0;
    if (computed) {
      const C r = read<S>(s.values[0], at), before = read<S>(s.h_before, at);
      const C d = read<C>(s.d_reset, at);
      to_r = elementwise::through_sigmoid(read_if<S>(s.arriving[0], at) + d * before, r);
      reset = r * before;
      write<C>(s.d_h, at, read<C>(s.d_h, at) + d * r);
    }
    write<S>(s.d_ru, row * 2 * cell + unit, to_r);
    write<S>(s.reset, row * (s.input + cell) + s.input + unit, reset);
  });
}

#define TN_GRU(S, type)                                                                           \
  TN_KERNEL(gru_reset_##type, GruForwardStep s) { gru_reset<S>(s); }                              \
  TN_KERNEL(gru_state_##type, GruForwardStep s) { gru_state<S>(s); }                              \
  TN_KERNEL(gru_candidate_gradients_##type, GruGradientStep s) { gru_candidate_gradients<S>(s); } \
  TN_KERNEL(gru_reset_gradients_##type, GruGradientStep s) { gru_reset_gradients<S>(s); }
TN_GRU(float, float32)
TN_GRU(double, float64)
TN_GRU(Float16, float16)
TN_GRU(BFloat16, bfloat16)

}  // namespace treenail::gpu
