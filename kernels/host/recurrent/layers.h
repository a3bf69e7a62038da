// SPDX-License-Identifier: Apache-2.0
// Layers of framework/ops/lstm.cc and gru.cc as kernels see them, whatever computes them: sizes,
// and where inputs and outputs stand.
#pragma once

#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::host {

struct LayerExtents {
  int64_t time = 1, batch = 0, input = 0, cell = 0;

  LayerExtents(const PrepareContext& p, int x, int state) {
    const Shape& shape = p.input_shape(x);
    const int rank = shape.rank();
    if (rank == 3) time = shape.dim(0);
    batch = shape.dim(rank - 2);
    input = shape.dim(rank - 1);
    cell = p.input_shape(state).dim(1);
  }
  bool empty() const { return time == 0 || batch == 0 || cell == 0; }
  // Of a layer that is not empty: its outputs have so many rows, so the product fits.
  int64_t rows() const { return time * batch; }
};

// Gates stand in the order i, ci, f, o, in the columns of weights and of what arrives at their
// products.
enum LstmOutput : int { kLstmI, kLstmCs, kLstmF, kLstmO, kLstmCi, kLstmCo, kLstmH, kLstmOutputs };
// The output that holds gate g of the weights' columns.
inline constexpr LstmOutput kLstmGates[4] = {kLstmI, kLstmCi, kLstmF, kLstmO};
// Of BlockLSTMGrad: its results, and one of gate_grads for each of i, f, o, ci, co where they are
// given.
enum LstmResult : int {
  kLstmXGrad,
  kLstmCsPrevGrad,
  kLstmHPrevGrad,
  kLstmWGrad,
  kLstmWciGrad,
  kLstmWcfGrad,
  kLstmWcoGrad,
  kLstmBGrad,
  kLstmResults
};
inline constexpr LstmOutput kLstmGateGradients[] = {kLstmI, kLstmF, kLstmO, kLstmCi, kLstmCo};

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

enum GruOutput : int { kGruR, kGruU, kGruC, kGruH, kGruOutputs };
enum GruResult : int {
  kGruXGrad,
  kGruHPrevGrad,
  kGruWRuGrad,
  kGruWCGrad,
  kGruBRuGrad,
  kGruBCGrad,
  kGruResults
};

struct GruPlan {
  bool sequence;
  int first;
  LayerExtents e;
  explicit GruPlan(const PrepareContext& p)
      : sequence(p.op().def().input_index("seq_len_max") >= 0),
        first(sequence ? 1 : 0),
        e(p, first, first + 1) {}
};

// Of seq_len_max. Errors: InvalidArgument outside [0, time].
inline void check_steps(int64_t steps, int64_t time) {
  if (steps >= 0 && steps <= time) return;
  throw invalid_argument("seq_len_max = ", steps, " is not in [0, ", time, "], the length of x");
}

}  // namespace treenail::host
