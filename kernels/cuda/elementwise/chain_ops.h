// SPDX-License-Identifier: Apache-2.0
// The rows of kernels/elementwise that a chain may hold, those computed in float or of truth
// values: TN_CHAIN_OPS stands for TN_CHAIN_ROW(name of its code, op, computed type, operands,
// definition...) of each, as that macro is where TN_CHAIN_OPS is written.
#pragma once

#include "kernels/elementwise/activation.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/comparison.h"
#include "kernels/elementwise/selection.h"
#include "kernels/elementwise/transcendental.h"
#include "kernels/elementwise/unary.h"

#define TN_CHAIN_float(op, operands, ...) TN_CHAIN_ROW(op, op, float, operands, __VA_ARGS__)
#define TN_CHAIN_bool(op, operands, ...) TN_CHAIN_ROW(Truth##op, op, bool, operands, __VA_ARGS__)
#define TN_CHAIN_double(...)
#define TN_CHAIN_int32_t(...)
#define TN_CHAIN_int64_t(...)
#define TN_CHAIN_1(op, Op, T, ns) TN_CHAIN_##T(op, 1, elementwise::Op)
#define TN_CHAIN_2(op, Op, T, ns) TN_CHAIN_##T(op, 2, elementwise::Op)
#define TN_CHAIN_3(op, Op, T, ns) TN_CHAIN_##T(op, 3, elementwise::Op)
#define TN_CHAIN_SWAPPED(op, Op, T, ns) TN_CHAIN_##T(op, 2, elementwise::Swapped<elementwise::Op>)
#define TN_CHAIN_EITHER_1(op, A, B, T, ns) \
  TN_CHAIN_##T(op, 1, Either<elementwise::A, elementwise::B>)
#define TN_CHAIN_EITHER_2(op, A, B, T, ns) \
  TN_CHAIN_##T(op, 2, Either<elementwise::A, elementwise::B>)

#define TN_CHAIN_OPS                                \
  TN_ARITHMETIC_OPS(TN_CHAIN_2)                     \
  TN_UNARY_OPS(TN_CHAIN_1)                          \
  TN_ACTIVATION_UNARY_OPS(TN_CHAIN_1)               \
  TN_ACTIVATION_BINARY_OPS(TN_CHAIN_2)              \
  TN_LEAKY_RELU_OPS(TN_CHAIN_1, TN_CHAIN_2)         \
  TN_GELU_OPS(TN_CHAIN_EITHER_1, TN_CHAIN_EITHER_2) \
  TN_TRANSCENDENTAL_UNARY_OPS(TN_CHAIN_1)           \
  TN_TRANSCENDENTAL_BINARY_OPS(TN_CHAIN_2)          \
  TN_COMPARISON_OPS(TN_CHAIN_2)                     \
  TN_SWAPPED_COMPARISON_OPS(TN_CHAIN_SWAPPED)       \
  TN_QUESTION_OPS(TN_CHAIN_1)                       \
  TN_TRUTH_UNARY_OPS(TN_CHAIN_1)                    \
  TN_TRUTH_BINARY_OPS(TN_CHAIN_2)                   \
  TN_APPROXIMATE_OPS(TN_CHAIN_2)                    \
  TN_CLIP_OPS(TN_CHAIN_3)
