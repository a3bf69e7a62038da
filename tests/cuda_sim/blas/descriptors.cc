// SPDX-License-Identifier: Apache-2.0
// Descriptors of the simulated cuBLASLt and their attributes. A size that is not the attribute's is
// refused, as the vendor documents.
#include "tests/cuda_sim/blas/descriptors.h"

#include <cstring>

#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

template <class Handle, class T>
cublasStatus_t create(Handle* handle, T value) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<Handle>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class Handle>
cublasStatus_t destroy(Handle handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  delete reinterpret_cast<T*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(T& to, const void* from, size_t bytes) {
  if (from == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Read, and of no consequence here.
template <class T>
cublasStatus_t ignore(const void* from, size_t bytes) {
  T value = {};
  return set(value, from, bytes);
}

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

// The real one needs a driver, too.
CUSIM_BLAS_ENTRY cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (driver_link() == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  static int context = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&context);
  return CUBLAS_STATUS_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) size_t CUBLASWINAPI cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

CUSIM_BLAS_ENTRY cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                          cudaDataType_t scale) {
  return create(handle, Product{.compute = compute, .scale = scale});
}

CUSIM_BLAS_ENTRY cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return destroy<Product>(handle);
}

CUSIM_BLAS_ENTRY cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                cublasLtMatmulDescAttributes_t attribute,
                                                const void* value, size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& to = *reinterpret_cast<Product*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return set(to.compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return set(to.scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return set(to.pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(to.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(to.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return set(to.transpose_c, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(to.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(to.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return set(to.bias_batch_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(to.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return ignore<int32_t>(value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

CUSIM_BLAS_ENTRY cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type,
                                            uint64_t rows, uint64_t cols, int64_t ld) {
  return create(handle, Layout{.type = type, .rows = rows, .cols = cols, .ld = ld});
}

CUSIM_BLAS_ENTRY cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return destroy<Layout>(handle);
}

CUSIM_BLAS_ENTRY cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                  cublasLtMatrixLayoutAttribute_t attribute,
                                                  const void* value, size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& to = *reinterpret_cast<Layout*>(handle);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return set(to.type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return set(to.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return set(to.rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return set(to.cols, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return set(to.ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(to.batches, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(to.batch_stride, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

CUSIM_BLAS_ENTRY cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  return create(handle, Preference());
}

CUSIM_BLAS_ENTRY cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return destroy<Preference>(handle);
}

CUSIM_BLAS_ENTRY cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
    const void* value, size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& to = *reinterpret_cast<Preference*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(to.workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(to.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(to.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(to.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(to.alignments[3], value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
      return ignore<uint32_t>(value, bytes);
    case CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT:
      return ignore<float>(value, bytes);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return ignore<uint64_t>(value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
