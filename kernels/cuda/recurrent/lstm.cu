// SPDX-License-Identifier: Apache-2.0
// Steps of long short-term memory beside their products, a unit of a row for each thread; the
// formulas are the CPU's (elementwise/recurrent.h). Bound by memory: forward nine values are read
// and seven written for each unit.
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/recurrent/units.h"
#include "kernels/elementwise/recurrent.h"

namespace treenail::gpu {

template <bool kPeephole, class S, class C = Computed<S>>
TN_DEVICE elementwise::LstmPeepholes<C> peepholes(const void* const (&w)[3], int64_t unit) {
  if constexpr (!kPeephole) return {C(0), C(0), C(0)};
  return {read<S>(w[0], unit), read<S>(w[1], unit), read<S>(w[2], unit)};
}

template <class S, class C>
TN_DEVICE void write_values(void* const (&to)[kLstmValues], int64_t at,
                            const elementwise::LstmValues<C>& y) {
  write<S>(to[0], at, y.i);
  write<S>(to[1], at, y.cs);
  write<S>(to[2], at, y.f);
  write<S>(to[3], at, y.o);
  write<S>(to[4], at, y.ci);
  write<S>(to[5], at, y.co);
  write<S>(to[6], at, y.h);
}

template <bool kPeephole, class S>
TN_DEVICE void lstm_forward(const LstmForwardStep& s) {
  using C = Computed<S>;
  const int64_t cell = s.layer.cell;
  const bool computed = is_computed(s.layer, s.layer.step);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    if (!computed) return write_values<S, C>(s.values, at, {});
    const auto sum = [&](int gate) {
      const int64_t column = gate * cell + unit, place = row * 4 * cell + column;
      return read<C>(s.of_x, place) + read<C>(s.of_h, place) + read<S>(s.b, column);
    };
    const elementwise::LstmGates<C> sums = {sum(0), sum(1), sum(2) + static_cast<C>(s.forget_bias),
                                            sum(3)};
    const C before = read_kept<S>(s.kept, s.cs_before, s.layer.step, at);
    const auto y = elementwise::lstm_unit<kPeephole>(
        sums, before, peepholes<kPeephole, S>(s.peepholes, unit), static_cast<C>(s.cell_clip));
    write_values<S>(s.values, at, y);
    write_kept<S>(s.kept, at, y.cs);
  });
}

// Of the gates i, ci, f and o.
template <class S, class C>
TN_DEVICE void write_gates(void* to, int64_t at, int64_t cell,
                           const elementwise::LstmGates<C>& gates) {
  write<S>(to, at, gates.i);
  write<S>(to, at + cell, gates.ci);
  write<S>(to, at + 2 * cell, gates.f);
  write<S>(to, at + 3 * cell, gates.o);
}

template <class S, class C = Computed<S>>
TN_DEVICE elementwise::LstmValues<C> arriving(const LstmGradientStep& s, int64_t at) {
  const auto given = [&](int k) { return read_if<S>(s.arriving[k], at); };
  const bool later = has_later(s.layer);
  const C cs = later ? read<C>(s.d_cs, at) : C(0), h = later ? read<C>(s.d_h, at) : C(0);
  return {given(0), given(1) + cs, given(2), given(3), given(4), given(5), given(6) + h};
}

template <bool kPeephole, class S>
TN_DEVICE elementwise::LstmGradient<Computed<S>> lstm_gradient_of(const LstmGradientStep& s,
                                                                  int64_t at, int64_t unit) {
  using C = Computed<S>;
  const auto value = [&](int k) { return read<S>(s.values[k], at); };
  return elementwise::lstm_gradient<kPeephole>(
      {value(0), value(1), value(2), value(3), value(4), value(5), C(0)}, arriving<S>(s, at),
      read<S>(s.cs_before, at), peepholes<kPeephole, S>(s.peepholes, unit),
      static_cast<C>(s.cell_clip));
}

template <bool kPeephole, class S>
TN_DEVICE void lstm_backward(const LstmGradientStep& s) {
  using C = Computed<S>;
  const int64_t cell = s.layer.cell;
  const bool computed = is_computed(s.layer, s.layer.step);
  for_units(s.layer, [&](int64_t at, int64_t row, int64_t unit) {
    elementwise::LstmGradient<C> d = {};
    if (computed) d = lstm_gradient_of<kPeephole, S>(s, at, unit);
    write_gates<S>(s.d, row * 4 * cell + unit, cell, d.gates);
    write<C>(s.d_cs, at, d.before);
    if (s.d_cs_prev != nullptr) write<S>(s.d_cs_prev, at, d.before);
    if constexpr (kPeephole) {
      const C before = computed ? read<S>(s.cs_before, at) : C(0);
      write<S>(s.d_peepholes[0], at, d.gates.i * before);
      write<S>(s.d_peepholes[1], at, d.gates.f * before);
      write<S>(s.d_peepholes[2], at, computed ? d.gates.o * read<S>(s.values[1], at) : C(0));
    }
  });
}

#define TN_LSTM(S, type)                                                                   \
  TN_KERNEL(lstm_forward_##type, LstmForwardStep s) { lstm_forward<false, S>(s); }         \
  TN_KERNEL(lstm_forward_peephole_##type, LstmForwardStep s) { lstm_forward<true, S>(s); } \
  TN_KERNEL(lstm_backward_##type, LstmGradientStep s) { lstm_backward<false, S>(s); }      \
  TN_KERNEL(lstm_backward_peephole_##type, LstmGradientStep s) { lstm_backward<true, S>(s); }
TN_LSTM(float, float32)
TN_LSTM(double, float64)
TN_LSTM(Float16, float16)
TN_LSTM(BFloat16, bfloat16)

}  // namespace treenail::gpu
