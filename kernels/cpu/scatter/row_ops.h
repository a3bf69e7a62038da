// SPDX-License-Identifier: Apache-2.0
// Combining one row into another, in place: to = to op from. What assignments, scatters and segment
// reductions do over and over, compiled once per element type; callers are not templates. Integers
// wrap; half types compute in float.
#pragma once

#include <cstdint>

#include "framework/base/function_ref.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail::cpu {

enum class RowOp : int { kAdd, kSubtract, kMultiply, kMinimum, kMaximum };

// n elements; with `one`, `from` is a single element that stands for n equal ones.
using RowFn = void (*)(void* to, const void* from, int64_t n, bool one);

// Errors: Unimplemented where `op` has no meaning for `dtype` (order of complex numbers, strings,
// bool).
RowFn row_fn(RowOp op, DType dtype);
// Parts of row_fn, in files of their own.
RowFn multiply_fn(DType dtype);
RowFn order_fn(RowOp op, DType dtype);

// Rows of a matrix [rows, row_bytes / element size].
struct RowTarget {
  std::byte* data;
  int64_t rows;
  int64_t row_elements;
  int64_t element_bytes;
};

// For each i: row indices[i] of `target` = itself op row i of `updates` (or its single element,
// with `one`). Negative indices are left out; others were checked. Each piece of work owns a range
// of rows and looks through all indices, so that repeated ones are applied in their order whoever
// does it.
void scatter_rows(RunContext& c, RowFn op, const RowTarget& target, const Tensor& indices,
                  const std::byte* updates, bool one);
// The same for n indices in an array.
void scatter_rows(RunContext& c, RowFn op, const RowTarget& target, const int64_t* indices,
                  int64_t n, const std::byte* updates);

// Zeros of any dtype whose zero is all bits zero.
void fill_zeros(RunContext& c, Tensor& output);

}  // namespace treenail::cpu
