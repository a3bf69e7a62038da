// SPDX-License-Identifier: Apache-2.0
// What training_float.cc and training_double.cc have in common: each formula as a loop, for one
// compute type.
#pragma once

#include "kernels/cpu/training/training_sweeps.h"

namespace treenail::cpu {

template <class Rule, class F>
void sweep(const F* scalars, const UpdateOptions& options, F* const* at, const F* __restrict g,
           int64_t n) {
  const Rule rule(scalars, options);
  F* __restrict var = at[0];
  if constexpr (Rule::kSlots == 0) {
    for (int64_t i = 0; i < n; ++i) rule(var[i], g[i]);
  } else if constexpr (Rule::kSlots == 1) {
    F* __restrict a = at[1];
    for (int64_t i = 0; i < n; ++i) rule(var[i], a[i], g[i]);
  } else if constexpr (Rule::kSlots == 2) {
    F* __restrict a = at[1];
    F* __restrict b = at[2];
    for (int64_t i = 0; i < n; ++i) rule(var[i], a[i], b[i], g[i]);
  } else {
    F* __restrict a = at[1];
    F* __restrict b = at[2];
    F* __restrict d = at[3];
    for (int64_t i = 0; i < n; ++i) rule(var[i], a[i], b[i], d[i], g[i]);
  }
}

template <class F>
Sweep<F> find_sweep(UpdateRule rule) {
  switch (rule) {
#define TN_RULE(name)       \
  case UpdateRule::k##name: \
    return sweep<elementwise::name##Rule<F>, F>;
    TN_UPDATE_RULES(TN_RULE)
#undef TN_RULE
  }
  return nullptr;
}

}  // namespace treenail::cpu
