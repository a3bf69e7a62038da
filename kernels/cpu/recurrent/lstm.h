// SPDX-License-Identifier: Apache-2.0
// A layer of long short-term memory as arrays, shared by the kernels of both directions (lstm.cc,
// lstm_gradient.cc). Gates stand in the order i, ci, f, o, in the columns of weights and of what
// arrives at their products.
#pragma once

#include "kernels/cpu/recurrent/recurrence.h"

namespace treenail::cpu {

enum LstmOutput : int { kLstmI, kLstmCs, kLstmF, kLstmO, kLstmCi, kLstmCo, kLstmH, kLstmOutputs };
// The output that holds gate g of the weights' columns.
inline constexpr LstmOutput kLstmGates[4] = {kLstmI, kLstmCi, kLstmF, kLstmO};

// What the op says, and where its inputs stand.
struct LstmPlan {
  bool sequence;  // seq_len_max comes first
  int first;      // the number of input x
  LayerExtents e;
  bool peephole;
  explicit LstmPlan(const PrepareContext& p)
      : sequence(p.op().def().input_index("seq_len_max") >= 0),
        first(sequence ? 1 : 0),
        e(p, first, first + 1),
        peephole(p.op().get_bool("use_peephole")) {}
};

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
