// SPDX-License-Identifier: Apache-2.0
// Products of too few elements for all threads, and of long rows by long columns: cut along k. The
// pieces' sums are added up in order, so that bits depend on the shape alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/products/gemm.h"

namespace treenail::cpu {

struct DepthCut {
  int64_t depth = 0, pieces = 1;  // the last piece is shorter

  DepthCut() = default;
  DepthCut(int64_t m, int64_t n, int64_t k);
};

// p by all threads; `partial` has room for `pieces` times its elements, which lie densely in C.
void multiply_deep(const RunContext& c, const Product<float>& p, const DepthCut& cut, double cost,
                   float* partial);
void multiply_deep(const RunContext& c, const Product<double>& p, const DepthCut& cut, double cost,
                   double* partial);

}  // namespace treenail::cpu
