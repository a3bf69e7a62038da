// SPDX-License-Identifier: Apache-2.0
// The system's BLAS as kernels see it: present or not, and which products go there. The choice is
// made when a kernel is prepared, by shape, level and library alone.
#pragma once

#include <cstdint>

#include "kernels/adapters/blas/blas_api.h"
#include "kernels/cpu/products/gemm.h"

namespace treenail::cpu {

// Null when there is no BLAS adapter, or its library is not to be called from several threads.
// Opened at the first call.
const BlasApi* blas();

// Whether BLAS is faster than our own product at this shape and level, and takes it (its sizes are
// 32 bits wide). Small, skinny and m = 1 products always stay with our own.
bool prefer_blas(int64_t m, int64_t n, int64_t k);

// Blocks of C for BLAS: larger than ours, its packing is shared by nobody.
BlockCut cut_for_blas(int64_t m, int64_t n, int64_t k);

// While it lives, the library runs each call on the calling thread alone.
class BlasScope {
 public:
  explicit BlasScope(const BlasApi* api) : api_(api) {
    if (api_ != nullptr) api_->begin();
  }
  ~BlasScope() {
    if (api_ != nullptr) api_->end();
  }
  BlasScope(const BlasScope&) = delete;
  BlasScope& operator=(const BlasScope&) = delete;

 private:
  const BlasApi* api_;
};

// C[m0:m1, n0:n1] of p by BLAS.
void blas_block(const BlasApi& api, const Product<float>& p, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1);
void blas_block(const BlasApi& api, const Product<double>& p, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1);

}  // namespace treenail::cpu
