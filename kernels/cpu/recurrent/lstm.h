// SPDX-License-Identifier: Apache-2.0
// A layer of long short-term memory as arrays, shared by the kernels of both directions (lstm.cc,
// lstm_gradient.cc).
#pragma once

#include "kernels/cpu/recurrent/recurrence.h"

namespace treenail::cpu {

using host::kLstmGates;
using host::LstmOutput;
using enum host::LstmOutput;
using host::LstmPlan;

template <class C>
struct LstmInputs {
  const C *x, *cs_prev, *h_prev, *w, *b;
  const C *wci = nullptr, *wcf = nullptr, *wco = nullptr;  // null without peepholes

  LstmInputs(RunContext& c, const LstmPlan& plan, const ComputedArrays<C>& arrays) {
    auto input = [&](int i) { return arrays.input(c, plan.first + i); };
    x = input(0);
    cs_prev = input(1);
    h_prev = input(2);
    w = input(3);
    if (plan.peephole) {
      wci = input(4);
      wcf = input(5);
      wco = input(6);
    }
    b = input(7);
  }
  // The part of w for the state before a step.
  const C* state_weights(const LayerExtents& e) const { return w + e.input * 4 * e.cell; }
};

// The kernel of BlockLSTMGrad, registered beside the others.
template <class C>
std::unique_ptr<Kernel> prepare_lstm_gradient(const PrepareContext& p);

}  // namespace treenail::cpu
