// SPDX-License-Identifier: Apache-2.0
// The loops of reductions, as level libraries (kernels/cpu/reductions/reduction.cc) and the
// baseline (reduction.cc: u64, complex) offer them. Which blocks they are called for:
// reduce_engine.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor/dtype.h"

namespace treenail::host {

// Elements of a contiguous row that become one value in one call.
inline constexpr int64_t kRowBlock = 1024;
// Rows that become one in one call, when rows are at least kRowBlock / kColumnBlock wide; narrower
// ones: more.
inline constexpr int64_t kColumnBlock = 64;

struct ReduceLoops {
  // out[r] from x[r][0 … n), for r in [0, rows); n <= kRowBlock.
  void (*rows)(const void* x, int64_t rows, int64_t n, void* out);
  // out[j] from x[0 … rows)[j], for j in [0, m); `stride`: elements from row to row.
  void (*columns)(const void* x, int64_t stride, int64_t rows, int64_t m, void* out);
  // The value of an empty reduction, in the loops' type.
  void (*fill)(void* out, int64_t n);
};

struct ReduceOp {
  std::string_view name;  // "Sum", "SumOfSquares", "Prod", "Max", "Min", "And", "Or"
  DType dtype;            // a compute type, or bool
  ReduceLoops loops;
  float ns;  // per element, operands in cache
};
void add_reduce_ops(std::span<const ReduceOp> ops);
const ReduceOp* find_reduce_op(std::string_view name, DType dtype);  // nullptr when there is none

}  // namespace treenail::host
