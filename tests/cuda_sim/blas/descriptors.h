// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of the simulated cuBLASLt point to.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>

// The declaration is cublasLt.h's, and so is the signature: another one does not compile.
#define CUSIM_BLAS_ENTRY \
  extern "C" __attribute__((visibility("default"))) cublasStatus_t CUBLASWINAPI

namespace treenail::cuda_sim {

struct Product {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasLtPointerMode_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  int32_t bias_type = -1;  // -1: that of the result
};

struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};

struct Preference {
  uint64_t workspace_bytes = 0;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};  // of A, B, C and D
};

inline const Product& product(cublasLtMatmulDesc_t handle) {
  return *reinterpret_cast<const Product*>(handle);
}
inline const Layout& layout(cublasLtMatrixLayout_t handle) {
  return *reinterpret_cast<const Layout*>(handle);
}
inline const Preference& preference(cublasLtMatmulPreference_t handle) {
  return *reinterpret_cast<const Preference*>(handle);
}

// An element of a layout in a buffer.
inline int64_t offset_of(const Layout& layout, int64_t row, int64_t col) {
  return layout.order == CUBLASLT_ORDER_COL ? row + col * layout.ld : row * layout.ld + col;
}

}  // namespace treenail::cuda_sim
