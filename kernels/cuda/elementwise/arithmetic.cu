// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two operands.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/arithmetic.h"

namespace treenail::gpu {

TN_ARITHMETIC_OPS(TN_BINARY_KERNEL)

}  // namespace treenail::gpu
