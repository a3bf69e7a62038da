// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients. `value`: attribute alpha of LeakyRelu and its gradient;
// of Gelu and its gradient 1 where attribute approximate is true, else 0.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/activation.h"

namespace treenail::gpu {

TN_ACTIVATION_UNARY_OPS(TN_UNARY_KERNEL)
TN_ACTIVATION_BINARY_OPS(TN_BINARY_KERNEL)
TN_LEAKY_RELU_OPS(TN_UNARY_KERNEL, TN_BINARY_KERNEL)

#define TN_EITHER_UNARY(op, Accurate, Approximate, T, ns)                     \
  using Either##op = Either<elementwise::Accurate, elementwise::Approximate>; \
  TN_STORED_##T(TN_SAME_UNARY, op, Either##op)
#define TN_EITHER_BINARY(op, Accurate, Approximate, T, ns)                    \
  using Either##op = Either<elementwise::Accurate, elementwise::Approximate>; \
  TN_STORED_##T(TN_SAME_BINARY, op, Either##op)

TN_GELU_OPS(TN_EITHER_UNARY, TN_EITHER_BINARY)

}  // namespace treenail::gpu
