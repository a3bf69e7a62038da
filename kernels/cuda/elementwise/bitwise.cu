// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/bitwise.h"

namespace treenail::gpu {

TN_BITWISE_UNARY_OPS(TN_UNARY_KERNEL)
TN_BITWISE_BINARY_OPS(TN_BINARY_KERNEL)

// The longest shift is known from the type, so there is no `value`.
template <class Op, class S>
TN_DEVICE void shift(int64_t n, const S* a, const S* b, S* y, const Broadcast& how) {
  binary<Op>(n, a, b, y, static_cast<double>(8 * sizeof(S) - 1), how);
}
#define TN_DEFINE_SHIFT(S, dtype, op, Op)                                                   \
  TN_KERNEL(op##_##dtype, int64_t n, const S* a, const S* b, S* y, double, Broadcast how) { \
    shift<Op>(n, a, b, y, how);                                                             \
  }
#define TN_SHIFT_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_DEFINE_SHIFT, op, elementwise::Op)

TN_SHIFT_OPS(TN_SHIFT_KERNEL)

}  // namespace treenail::gpu
