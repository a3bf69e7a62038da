// SPDX-License-Identifier: Apache-2.0
// Which products the vendor's table of supported types and its rules of shapes allow, of those that
// are computed here: what is in the table and not here is refused as not supported, too.
#include <cstdlib>

#include "tests/cuda_sim/blas/matmul.h"

namespace treenail::cuda_sim {
namespace {

bool is_half(cudaDataType_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }

bool is_double(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
}

// Of those, halves are computed as they are only by the first two.
bool is_float(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
         compute == CUBLAS_COMPUTE_32F_FAST_16F || compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
         compute == CUBLAS_COMPUTE_32F_FAST_TF32;
}

bool types_are_supported(const Product& product, cudaDataType_t in, cudaDataType_t out) {
  if (is_double(product.compute))
    return product.scale == CUDA_R_64F && in == CUDA_R_64F && out == CUDA_R_64F;
  if (!is_float(product.compute) || product.scale != CUDA_R_32F) return false;
  const bool plain =
      product.compute == CUBLAS_COMPUTE_32F || product.compute == CUBLAS_COMPUTE_32F_PEDANTIC;
  return (in == CUDA_R_32F && out == CUDA_R_32F) ||
         (plain && is_half(in) && (out == in || out == CUDA_R_32F));
}

bool epilogue_is_supported(const Product& product, cudaDataType_t out) {
  switch (product.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return true;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_GELU:
      return out != CUDA_R_64F;
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return out != CUDA_R_64F && (product.bias_type == -1 || product.bias_type == out);
    default:
      return false;
  }
}

bool is_operation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

bool is_plain(const Layout& layout) {
  const uint64_t length = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.cols;
  return layout.rows != 0 && layout.cols != 0 && layout.batches > 0 && layout.ld > 0 &&
         static_cast<uint64_t>(layout.ld) >= length;
}

bool same_matrix(const Layout& c, const Layout& d) {
  return c.rows == d.rows && c.cols == d.cols && c.batches == d.batches && c.order == d.order;
}

}  // namespace

size_t type_size(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

cublasStatus_t check_types(const Product& product, const Layout& a, const Layout& b,
                           const Layout& c, const Layout& d) {
  const bool known_mode = product.pointer_mode == CUBLASLT_POINTER_MODE_HOST ||
                          product.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const bool orders = a.order <= CUBLASLT_ORDER_ROW && b.order <= CUBLASLT_ORDER_ROW &&
                      c.order <= CUBLASLT_ORDER_ROW && d.order <= CUBLASLT_ORDER_ROW;
  const bool supported = a.type == b.type && c.type == d.type &&
                         types_are_supported(product, a.type, d.type) &&
                         epilogue_is_supported(product, d.type) && known_mode && orders &&
                         product.transpose_c == CUBLAS_OP_N;
  return supported ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t check_shapes(const Product& product, const Layout& a, const Layout& b,
                            const Layout& c, const Layout& d) {
  if (!is_operation(product.transpose_a) || !is_operation(product.transpose_b) || !is_plain(a) ||
      !is_plain(b) || !is_plain(c) || !is_plain(d))
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool a_turned = product.transpose_a != CUBLAS_OP_N;
  const bool b_turned = product.transpose_b != CUBLAS_OP_N;
  const bool fits =
      (a_turned ? a.cols : a.rows) == d.rows && (b_turned ? b.rows : b.cols) == d.cols &&
      (a_turned ? a.rows : a.cols) == (b_turned ? b.cols : b.rows) && a.batches == d.batches &&
      b.batches == d.batches && same_matrix(c, d) && (d.batches == 1 || d.batch_stride != 0);
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace treenail::cuda_sim
