// SPDX-License-Identifier: Apache-2.0
// The optimisers' sweeps in double.
#include "kernels/cpu/training/training_sweep_table.h"

namespace treenail::cpu {

Sweep<double> double_sweep(UpdateRule rule) { return find_sweep<double>(rule); }

}  // namespace treenail::cpu
