// SPDX-License-Identifier: Apache-2.0
// The plain product: each element is summed in the order of the depth, in the type of the
// computation, and rounded once.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/cuda_sim/blas/matmul.h"
#include "tests/cuda_sim/link/elements.h"

namespace treenail::cuda_sim {
namespace {

// What the fast computations leave of a float.
template <class T>
T rounded(cublasComputeType_t compute, T value) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_16F)
    return static_cast<T>(__half2float(__float2half_rn(static_cast<float>(value))));
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF)
    return static_cast<T>(__bfloat162float(__float2bfloat16_rn(static_cast<float>(value))));
  if (compute != CUBLAS_COMPUTE_32F_FAST_TF32 || !std::isfinite(value)) return value;
  auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof(bits));
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff};  // ten bits of fraction
  std::memcpy(&narrow, &bits, sizeof(bits));
  return static_cast<T>(narrow);
}

// A batch of an operand after its operation, dense and column-major.
template <class T>
std::vector<T> packed(const Matmul& matmul, const Operand& operand, cublasOperation_t operation,
                      int batch) {
  const Layout& layout = operand.layout;
  const bool turned = operation != CUBLAS_OP_N;
  const auto rows = static_cast<int64_t>(turned ? layout.cols : layout.rows);
  const auto cols = static_cast<int64_t>(turned ? layout.rows : layout.cols);
  std::vector<T> values(static_cast<size_t>(rows * cols));
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = batch * layout.batch_stride +
                         (turned ? offset_of(layout, j, i) : offset_of(layout, i, j));
      values[static_cast<size_t>(i + j * rows)] =
          rounded(matmul.product.compute, load<T>(layout.type, operand.at, at));
    }
  }
  return values;
}

template <class T>
T gelu(T x) {
  return x / 2 * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}

template <class T>
T epilogue(const Matmul& matmul, T value, int64_t row, int batch) {
  const int kind = matmul.product.epilogue;
  if ((kind & CUBLASLT_EPILOGUE_BIAS) != 0) {
    const int64_t at = row + batch * matmul.product.bias_batch_stride;
    value += load<T>(matmul.d.layout.type, matmul.product.bias, at);
  }
  if ((kind & CUBLASLT_EPILOGUE_RELU) != 0)
    return value > 0 ? value : std::isnan(value) ? value : 0;
  return (kind & CUBLASLT_EPILOGUE_GELU) != 0 ? gelu(value) : value;
}

template <class T>
void store_column(const Matmul& matmul, const std::vector<T>& sums, int64_t col, int batch) {
  const Layout &c = matmul.c.layout, &d = matmul.d.layout;
  for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
    T value = static_cast<T>(matmul.alpha) * sums[static_cast<size_t>(row)];
    if (matmul.beta != 0) {
      const int64_t at = batch * c.batch_stride + offset_of(c, row, col);
      value += static_cast<T>(matmul.beta) * load<T>(c.type, matmul.c.at, at);
    }
    store(d.type, const_cast<void*>(matmul.d.at), batch * d.batch_stride + offset_of(d, row, col),
          epilogue(matmul, value, row, batch));
  }
}

template <class T>
void compute_in(const Matmul& matmul) {
  const auto rows = static_cast<size_t>(matmul.d.layout.rows);
  const auto depth = static_cast<size_t>(matmul.depth());
  std::vector<T> sums(rows);
  for (int batch = 0; batch < matmul.d.layout.batches; ++batch) {
    const auto a = packed<T>(matmul, matmul.a, matmul.product.transpose_a, batch);
    const auto b = packed<T>(matmul, matmul.b, matmul.product.transpose_b, batch);
    for (size_t j = 0; j < matmul.d.layout.cols; ++j) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (size_t k = 0; k < depth; ++k) {
        const T factor = b[k + j * depth];
        for (size_t i = 0; i < rows; ++i) sums[i] += a[i + k * rows] * factor;
      }
      store_column(matmul, sums, static_cast<int64_t>(j), batch);
    }
  }
}

}  // namespace

size_t Operand::elements() const {
  const auto last = offset_of(layout, static_cast<int64_t>(layout.rows) - 1,
                              static_cast<int64_t>(layout.cols) - 1);
  return static_cast<size_t>(last + 1 + (layout.batches - 1) * layout.batch_stride);
}

int64_t Matmul::depth() const {
  const Layout& layout = a.layout;
  return static_cast<int64_t>(product.transpose_a == CUBLAS_OP_N ? layout.cols : layout.rows);
}

void compute(const Matmul& matmul) {
  if (matmul.product.scale == CUDA_R_64F) return compute_in<double>(matmul);
  compute_in<float>(matmul);
}

}  // namespace treenail::cuda_sim
