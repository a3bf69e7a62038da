// SPDX-License-Identifier: Apache-2.0
// Algebraic functions of one operand.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/unary.h"

namespace treenail::gpu {

TN_UNARY_OPS(TN_UNARY_KERNEL)

}  // namespace treenail::gpu
