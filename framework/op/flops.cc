// SPDX-License-Identifier: Apache-2.0
#include "framework/op/flops.h"

namespace treenail {

double count_flops(const OpInstance& op, std::span<const Shape> inputs,
                   std::span<const Shape> outputs) {
  if (op.def().flops_fn != nullptr) return op.def().flops_fn(op, inputs, outputs);
  return op.def().elementwise ? static_cast<double>(outputs[0].num_elements()) : 0;
}

}  // namespace treenail
