// SPDX-License-Identifier: Apache-2.0
// Products of matrices shared out over the pool: BLAS or our own, cut into blocks by shape alone.
// A product as an op: matmul.cc; kernels that need products on the way: lstm.cc, gru.cc.
#pragma once

#include <cstdint>
#include <span>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/products/blas.h"
#include "kernels/cpu/products/gemm.h"

namespace treenail::cpu {

// Who multiplies, and in which blocks.
struct PooledProduct {
  const BlasApi* api = nullptr;
  BlockCut cut;
  PooledProduct() = default;
  PooledProduct(int64_t m, int64_t n, int64_t k, bool trans_a);
  // Block [0, cut.blocks()) of p, on the calling thread, inside a BlasScope of `api`.
  void multiply(const Product<float>& p, int64_t block) const;
  void multiply(const Product<double>& p, int64_t block) const;
};

// Computes products that do not depend on each other, at most four.
void multiply_on_pool(const RunContext& c, std::span<const Product<float>> products);
void multiply_on_pool(const RunContext& c, std::span<const Product<double>> products);

}  // namespace treenail::cpu
