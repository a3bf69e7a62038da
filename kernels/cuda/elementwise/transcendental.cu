// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, tanh, sigmoid and erf.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/transcendental.h"

namespace treenail::gpu {

TN_TRANSCENDENTAL_UNARY_OPS(TN_UNARY_KERNEL)
TN_TRANSCENDENTAL_BINARY_OPS(TN_BINARY_KERNEL)

}  // namespace treenail::gpu
