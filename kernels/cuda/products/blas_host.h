// SPDX-License-Identifier: Apache-2.0
// Matrix products by NVIDIA's cuBLASLt, opened when the first product is prepared.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/tensor/dtype.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// C = op(A) op(B) for row-major matrices that lie densely, `batch` times.
struct StridedProduct {
  DType dtype = DType::kFloat32;  // of A, B and C: a floating one
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // elements from one to the next
  bool wide = false;                                 // C is float32 where A and B are of 16 bits
};

// How one shape of product is computed, chosen by cuBLASLt's heuristic once for operands as they
// lie as a rule, and once for those that are aligned to their elements alone.
class BlasProduct {
 public:
  // Errors: FailedPrecondition where cuBLASLt is absent; Unimplemented where it has no algorithm.
  BlasProduct(CudaDevice& device, const StridedProduct& product);
  ~BlasProduct();
  BlasProduct(const BlasProduct&) = delete;
  BlasProduct& operator=(const BlasProduct&) = delete;

  size_t scratch_bytes() const;
  // Queued. Errors: as CudaDevice::check().
  void launch(const void* a, const void* b, void* c, std::byte* scratch) const;

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t choice;
    size_t workspace_bytes = 0;
  };
  Algorithm choose(uint32_t alignment) const;

  CudaDevice& device_;
  const bool is_double_;
  cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  Algorithm aligned_, any_;
};

}  // namespace treenail::cuda
