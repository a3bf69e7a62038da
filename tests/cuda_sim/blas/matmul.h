// SPDX-License-Identifier: Apache-2.0
// A product as it is asked for, checked and then computed when its stream gets there.
#pragma once

#include <cstddef>

#include "tests/cuda_sim/blas/descriptors.h"

namespace treenail::cuda_sim {

struct Operand {
  Layout layout;
  const void* at = nullptr;

  size_t elements() const;  // of its buffer, all batches
};

struct Matmul {
  Product product;
  Operand a, b, c, d;
  double alpha = 1, beta = 0;  // in host mode
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

  int64_t depth() const;
};

size_t type_size(cudaDataType_t type);
// CUBLAS_STATUS_SUCCESS, or what the vendor answers.
cublasStatus_t check_types(const Product& product, const Layout& a, const Layout& b,
                           const Layout& c, const Layout& d);
cublasStatus_t check_shapes(const Product& product, const Layout& a, const Layout& b,
                            const Layout& c, const Layout& d);

// On memory that the host can read: all addresses are views.
void compute(const Matmul& matmul);

}  // namespace treenail::cuda_sim
