// SPDX-License-Identifier: Apache-2.0
// Comparisons and questions with truth values as results, and what is computed of truth values.
// `value`: attribute tolerance of ApproximateEqual.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/comparison.h"

namespace treenail::gpu {

TN_COMPARISON_OPS(TN_COMPARISON_KERNEL)
TN_QUESTION_OPS(TN_QUESTION_KERNEL)
TN_TRUTH_UNARY_OPS(TN_UNARY_KERNEL)
TN_TRUTH_BINARY_OPS(TN_BINARY_KERNEL)
TN_APPROXIMATE_OPS(TN_COMPARISON_KERNEL)

#define TN_SWAPPED_KERNEL(op, Op, T, ns) \
  TN_STORED_##T(TN_TRUE_BINARY, op, elementwise::Swapped<elementwise::Op>)

TN_SWAPPED_COMPARISON_OPS(TN_SWAPPED_KERNEL)

}  // namespace treenail::gpu
