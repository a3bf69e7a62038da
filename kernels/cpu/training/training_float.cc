// SPDX-License-Identifier: Apache-2.0
// The optimisers' sweeps in float.
#include "kernels/cpu/training/training_sweep_table.h"

namespace treenail::cpu {

Sweep<float> float_sweep(UpdateRule rule) { return find_sweep<float>(rule); }

}  // namespace treenail::cpu
