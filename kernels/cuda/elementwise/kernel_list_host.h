// SPDX-License-Identifier: Apache-2.0
// The kernels of the .cu files beside, for the host: of the rows of kernels/elementwise, as they
// are. Not here, for their names say all: Cast_<from>_<to> for all pairs of cast_types.h, and
// Select_<bytes of an element> for 1, 2, 4, 8 and 16.
#pragma once

#include "framework/tensor/dtype.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/elementwise/complex_ops.h"
#include "kernels/cuda/elementwise/stored_types.h"
#include "kernels/elementwise/activation.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/bessel.h"
#include "kernels/elementwise/bitwise.h"
#include "kernels/elementwise/comparison.h"
#include "kernels/elementwise/division.h"
#include "kernels/elementwise/gamma.h"
#include "kernels/elementwise/library.h"
#include "kernels/elementwise/quantiles.h"
#include "kernels/elementwise/selection.h"
#include "kernels/elementwise/through_double.h"
#include "kernels/elementwise/transcendental.h"
#include "kernels/elementwise/unary.h"

namespace treenail::cuda {

// The attribute that is a kernel's parameter `value`.
enum class ValueAttribute { kNone, kAlpha, kApproximate, kTolerance };

struct ElementwiseKernel {
  const char* op;
  DType dtype;  // of the operands, in memory
  const char* name;
  int operands;
  ValueAttribute value = ValueAttribute::kNone;
  bool has_error = false;  // with a last parameter int32_t* error (division_errors.h)
};

#define TN_LISTED(S, dtype, op, ...) {#op, dtype_of<S>, #op "_" #dtype, __VA_ARGS__},
#define TN_1(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 1)
#define TN_2(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 2)
#define TN_3(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 3)
#define TN_ALPHA_1(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 1, ValueAttribute::kAlpha)
#define TN_ALPHA_2(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 2, ValueAttribute::kAlpha)
#define TN_TOLERANCE_2(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 2, ValueAttribute::kTolerance)
#define TN_EITHER_1(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 1, ValueAttribute::kApproximate)
#define TN_EITHER_2(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 2, ValueAttribute::kApproximate)
#define TN_GELU_1(op, Accurate, Approximate, T, ns) TN_EITHER_1(op, Accurate, T, ns)
#define TN_GELU_2(op, Accurate, Approximate, T, ns) TN_EITHER_2(op, Accurate, T, ns)
#define TN_CHECKED_2(op, Op, T, ns) TN_STORED_##T(TN_LISTED, op, 2, ValueAttribute::kNone, true)
#define TN_COMPLEX_LISTED(op, operands)                 \
  {#op, DType::kComplex64, #op "_complex64", operands}, \
      {#op, DType::kComplex128, #op "_complex128", operands},
#define TN_COMPLEX_1(op) TN_COMPLEX_LISTED(op, 1)
#define TN_COMPLEX_2(op) TN_COMPLEX_LISTED(op, 2)

// clang-format off
inline constexpr ElementwiseKernel kElementwiseKernels[] = {
    TN_ARITHMETIC_OPS(TN_2)
    TN_UNARY_OPS(TN_1)
    TN_ACTIVATION_UNARY_OPS(TN_1)
    TN_ACTIVATION_BINARY_OPS(TN_2)
    TN_LEAKY_RELU_OPS(TN_ALPHA_1, TN_ALPHA_2)
    TN_GELU_OPS(TN_GELU_1, TN_GELU_2)
    TN_TRANSCENDENTAL_UNARY_OPS(TN_1)
    TN_TRANSCENDENTAL_BINARY_OPS(TN_2)
    TN_THROUGH_DOUBLE_OPS(TN_1)
    TN_SINE_OPS(TN_1)
    TN_POWER_OPS(TN_2)
    TN_BESSEL_THROUGH_DOUBLE_OPS(TN_1)
    TN_BESSEL_OPS(TN_1)
    TN_GAMMA_THROUGH_DOUBLE_OPS(TN_1)
    TN_GAMMA_OPS(TN_1)
    TN_QUANTILE_THROUGH_DOUBLE_OPS(TN_1)
    TN_QUANTILE_OPS(TN_1)
    TN_LIBRARY_UNARY_OPS(TN_1)
    TN_LIBRARY_BINARY_OPS(TN_2)
    TN_LIBRARY_LGAMMA_OPS(TN_1)
    TN_LIBRARY_GELU_OPS(TN_EITHER_1, TN_EITHER_2)
    TN_COMPARISON_OPS(TN_2)
    TN_SWAPPED_COMPARISON_OPS(TN_2)
    TN_QUESTION_OPS(TN_1)
    TN_TRUTH_BINARY_OPS(TN_2)
    TN_TRUTH_UNARY_OPS(TN_1)
    TN_APPROXIMATE_OPS(TN_TOLERANCE_2)
    TN_BITWISE_BINARY_OPS(TN_2)
    TN_BITWISE_UNARY_OPS(TN_1)
    TN_SHIFT_OPS(TN_2)
    TN_FLOAT_DIVISION_OPS(TN_2)
    TN_INTEGER_DIVISION_OPS(TN_CHECKED_2)
    TN_INTEGER_POWER_OPS(TN_CHECKED_2)
    TN_CLIP_OPS(TN_3)
    TN_COMPLEX_BINARY_OPS(TN_COMPLEX_2)
    TN_COMPLEX_UNARY_OPS(TN_COMPLEX_1)
    TN_COMPLEX_PART_OPS(TN_COMPLEX_1)
    TN_COMPLEX_QUESTION_OPS(TN_COMPLEX_2)
    {"Complex", DType::kFloat32, "Complex_float32", 2},
    {"Complex", DType::kFloat64, "Complex_float64", 2},
};
// clang-format on

#undef TN_LISTED
#undef TN_1
#undef TN_2
#undef TN_3
#undef TN_ALPHA_1
#undef TN_ALPHA_2
#undef TN_TOLERANCE_2
#undef TN_EITHER_1
#undef TN_EITHER_2
#undef TN_GELU_1
#undef TN_GELU_2
#undef TN_CHECKED_2
#undef TN_COMPLEX_LISTED
#undef TN_COMPLEX_1
#undef TN_COMPLEX_2

}  // namespace treenail::cuda
