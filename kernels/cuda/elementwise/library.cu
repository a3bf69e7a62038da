// SPDX-License-Identifier: Apache-2.0
// Functions of real numbers that CUDA's library computes. `value`: of Gelu and its gradient 1 where
// attribute approximate is true, else 0.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/library.h"

namespace treenail::gpu {

#define TN_LIBRARY_UNARY(op, Op, T, ns) TN_STORED_##T(TN_SAME_UNARY, op, library::Op)
#define TN_LIBRARY_BINARY(op, Op, T, ns) TN_STORED_##T(TN_SAME_BINARY, op, library::Op)

TN_LIBRARY_UNARY_OPS(TN_LIBRARY_UNARY)
TN_LIBRARY_BINARY_OPS(TN_LIBRARY_BINARY)

struct Lgamma {
  TN_DEVICE static double apply(double x) { return std::lgamma(x); }
};
#define TN_LGAMMA_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_UNARY, op, Op)

TN_LIBRARY_LGAMMA_OPS(TN_LGAMMA_KERNEL)

template <class Op>
struct Approximate {
  static constexpr bool kTakesValue = true;
  template <class... T>
  TN_DEVICE static double apply(T... x_and_value) {
    return Op::apply(x_and_value...);
  }
};
#define TN_GELU_UNARY(op, Op, T, ns) TN_STORED_##T(TN_SAME_UNARY, op, Approximate<library::Op>)
#define TN_GELU_BINARY(op, Op, T, ns) TN_STORED_##T(TN_SAME_BINARY, op, Approximate<library::Op>)

TN_LIBRARY_GELU_OPS(TN_GELU_UNARY, TN_GELU_BINARY)

}  // namespace treenail::gpu
