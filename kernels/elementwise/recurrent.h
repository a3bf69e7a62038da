// SPDX-License-Identifier: Apache-2.0
// What a step of a recurrent layer (framework/ops/lstm.cc, gru.cc) does to one unit beside its
// products: forward, and backward from what arrives at the step's values.
#pragma once

#include "kernels/cpu/simd/vec_math.h"
#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

// x y (1 - y) and x (1 - y^2).
template <class V>
TN_INLINE V through_sigmoid(V x, V y) {
  return x * (y * (splat<V>(ElementOf<V>(1)) - y));
}
template <class V>
TN_INLINE V through_tanh(V x, V y) {
  return x * (splat<V>(ElementOf<V>(1)) - y * y);
}

// --- Long short-term memory ---------------------------------------------------------------------

// Before their nonlinearities.
template <class V>
struct LstmGates {
  V i, ci, f, o;
};
template <class V>
struct LstmValues {
  V i, cs, f, o, ci, co, h;
};
// Not read without peepholes.
template <class V>
struct LstmPeepholes {
  V i, f, o;
};

// `sums`: of products and biases, that of f with the forget bias; `before`: cs of the step before.
template <bool kPeephole, class V>
TN_INLINE LstmValues<V> lstm_unit(LstmGates<V> sums, V before, const LstmPeepholes<V>& w,
                                  ElementOf<V> cell_clip) {
  LstmValues<V> y;
  if constexpr (kPeephole) {
    sums.i += before * w.i;
    sums.f += before * w.f;
  }
  y.i = sigmoid(sums.i);
  y.f = sigmoid(sums.f);
  y.ci = tanh(sums.ci);
  y.cs = y.ci * y.i + before * y.f;
  if (cell_clip > 0) y.cs = clamp(y.cs, -cell_clip, cell_clip);
  if constexpr (kPeephole) sums.o += y.cs * w.o;
  y.o = sigmoid(sums.o);
  y.co = tanh(y.cs);
  y.h = y.co * y.o;
  return y;
}

template <class V>
struct LstmGradient {
  LstmGates<V> gates;
  V before;  // of cs of the step before
};

// `y`: values of the step but h; `arriving`: gradients at them, those of cs and h from the step
// after, too.
template <bool kPeephole, class V>
TN_INLINE LstmGradient<V> lstm_gradient(const LstmValues<V>& y, const LstmValues<V>& arriving,
                                        V before, const LstmPeepholes<V>& w,
                                        ElementOf<V> cell_clip) {
  LstmGradient<V> d;
  d.gates.o = through_sigmoid(arriving.o + arriving.h * y.co, y.o);
  V cs = arriving.cs + through_tanh(arriving.co + arriving.h * y.o, y.co);
  if constexpr (kPeephole) cs += d.gates.o * w.o;
  if (cell_clip > 0) cs = absolute(y.cs) < splat<V>(cell_clip) ? cs : V{};
  d.gates.i = through_sigmoid(arriving.i + cs * y.ci, y.i);
  d.gates.ci = through_tanh(arriving.ci + cs * y.i, y.ci);
  d.gates.f = through_sigmoid(arriving.f + cs * before, y.f);
  d.before = cs * y.f;
  if constexpr (kPeephole) d.before += d.gates.i * w.i + d.gates.f * w.f;
  return d;
}

// --- Gated recurrent unit -----------------------------------------------------------------------

template <class V>
TN_INLINE V gru_state(V u, V before, V candidate) {
  return u * before + (splat<V>(ElementOf<V>(1)) - u) * candidate;
}

// From h, at which `h` arrives, to the candidate and to u; `before`: h of the step before.
template <class V>
struct GruCandidateGradient {
  V c, u;    // before their nonlinearities
  V before;  // straight
};
template <class V>
TN_INLINE GruCandidateGradient<V> gru_candidate_gradient(V u, V candidate, V before, V h, V at_c,
                                                         V at_u) {
  const V to_c = at_c + h * (splat<V>(ElementOf<V>(1)) - u);
  const V to_u = at_u + h * (before - candidate);
  return {through_tanh(to_c, candidate), through_sigmoid(to_u, u), h * u};
}

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise
