// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/kernel_choice_host.h"

#include "framework/base/error.h"

namespace treenail::cuda {

const ElementwiseKernel& kernel_for(const OpInstance& op) {
  for (const ElementwiseKernel& kernel : kElementwiseKernels) {
    if (kernel.dtype == op.input_type(0) && op.name() == kernel.op) return kernel;
  }
  throw internal_error("no kernel computes ", op.name(), " on ", op.input_type(0));
}

double value_of(const OpInstance& op) {
  switch (kernel_for(op).value) {
    case ValueAttribute::kAlpha:
      return op.get_float("alpha");
    case ValueAttribute::kApproximate:
      return op.get_bool("approximate") ? 1 : 0;
    case ValueAttribute::kTolerance:
      return op.get_float("tolerance");
    case ValueAttribute::kNone:
      break;
  }
  return 0;
}

}  // namespace treenail::cuda
