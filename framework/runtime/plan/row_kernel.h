// SPDX-License-Identifier: Apache-2.0
// A chain of kernels on a few rows at a time, so that what is between them lies in a buffer that
// stays in cache: a softmax or a layer norm of elementary ops. Which nodes: plan_rows.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/shape.h"

namespace treenail {

// Inputs come first, then the stages' results; the last result is the chain's.
struct RowValue {
  DType dtype = DType::kInvalid;
  Shape block, rest;      // of a block of rows, and of the last one
  int64_t row_bytes = 0;  // 0: the same for all rows
};

struct RowStage {
  std::unique_ptr<Kernel> block, rest;
  std::vector<int32_t> inputs;  // numbers of values
};

struct RowChain {
  int64_t rows = 0;
  int64_t block_rows = 0;
  int32_t inputs = 0;
  std::vector<RowValue> values;
  std::vector<RowStage> stages;
};

// Null where the chain is beyond a limit (kernel_fusion.h).
std::unique_ptr<Kernel> make_row_kernel(RowChain chain);

}  // namespace treenail
