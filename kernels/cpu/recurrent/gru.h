// SPDX-License-Identifier: Apache-2.0
// A layer of gated recurrent units as arrays, shared by the kernels of both directions (gru.cc,
// gru_gradient.cc).
#pragma once

#include "kernels/cpu/recurrent/recurrence.h"

namespace treenail::cpu {

using host::GruOutput;
using host::GruPlan;
using enum host::GruOutput;

template <class C>
struct GruInputs {
  const C *x, *h_prev, *w_ru, *w_c, *b_ru, *b_c;

  GruInputs(RunContext& c, const GruPlan& plan, const ComputedArrays<C>& arrays)
      : x(arrays.input(c, plan.first)),
        h_prev(arrays.input(c, plan.first + 1)),
        w_ru(arrays.input(c, plan.first + 2)),
        w_c(arrays.input(c, plan.first + 3)),
        b_ru(arrays.input(c, plan.first + 4)),
        b_c(arrays.input(c, plan.first + 5)) {}
  // The parts of the weights for the state before a step.
  const C* state_ru(const LayerExtents& e) const { return w_ru + e.input * 2 * e.cell; }
  const C* state_c(const LayerExtents& e) const { return w_c + e.input * e.cell; }
};

// The kernel of BlockGRUGrad, registered beside the others.
template <class C>
std::unique_ptr<Kernel> prepare_gru_gradient(const PrepareContext& p);

}  // namespace treenail::cpu
