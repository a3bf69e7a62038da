// SPDX-License-Identifier: Apache-2.0
// A step of an optimiser's formula (elementwise/training.h) on elements as they are stored: half
// types are computed in float, and rounded after each step. Scalars are read where they lie; slots
// that a formula has not are null.
#pragma once

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/training/rule_types.h"
#include "kernels/elementwise/training.h"

namespace treenail::gpu {

template <class S>
struct Scalars {
  Computed<S> of[6];
  TN_DEVICE void read(const S* s0, const S* s1, const S* s2, const S* s3, const S* s4,
                      const S* s5) {
    const S* const from[6] = {s0, s1, s2, s3, s4, s5};
    for (int i = 0; i < 6; ++i)
      of[i] = from[i] != nullptr ? Stored<S>::widen(*from[i]) : Computed<S>(0);
  }
};

template <class Rule, class F>
TN_DEVICE void step(const Rule& rule, F& var, F* a, F* b, F* d, F g) {
  if constexpr (Rule::kSlots == 0) {
    rule(var, g);
  } else if constexpr (Rule::kSlots == 1) {
    rule(var, *a, g);
  } else if constexpr (Rule::kSlots == 2) {
    rule(var, *a, *b, g);
  } else {
    rule(var, *a, *b, *d, g);
  }
}

// A variable and its slots.
template <class S>
struct State {
  S *var, *a, *b, *d;

  template <class Rule>
  TN_DEVICE void step_at(const Rule& rule, int64_t i, S gradient) const {
    const Computed<S> g = Stored<S>::widen(gradient);
    if constexpr (std::is_same_v<S, Computed<S>>) {
      step(rule, var[i], a + i, b + i, d + i, g);
    } else {
      Computed<S> value = Stored<S>::widen(var[i]), slots[3] = {};
      S* const stored[3] = {a, b, d};
      for (int k = 0; k < Rule::kSlots; ++k) slots[k] = Stored<S>::widen(stored[k][i]);
      step(rule, value, slots, slots + 1, slots + 2, g);
      var[i] = Stored<S>::narrow(value);
      for (int k = 0; k < Rule::kSlots; ++k) stored[k][i] = Stored<S>::narrow(slots[k]);
    }
  }
};

}  // namespace treenail::gpu
