// SPDX-License-Identifier: Apache-2.0
// Products of the simulated cuBLASLt. There is one algorithm. It wants a workspace where it may
// have one, which it fills with rubbish, and it holds whoever asked for it to the alignments that
// were promised, as far as the vendor's make use of them.
#include "tests/cuda_sim/blas/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

constexpr uint64_t kAlgorithm = 0x7472656e61696c01;  // the first word of one
constexpr uint32_t kMostAlignment = 16;
constexpr uint64_t kWorkspace = 8192;
constexpr uint64_t kWorkspaceAlignment = 256;
constexpr int kRubbish = 0xa5;

double read_scalar(cudaDataType_t type, const void* from) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(from);
  return static_cast<double>(*static_cast<const float*>(from));
}

cublasStatus_t check(const Matmul& matmul) {
  const Layout &a = matmul.a.layout, &b = matmul.b.layout, &c = matmul.c.layout,
               &d = matmul.d.layout;
  const cublasStatus_t shapes = check_shapes(matmul.product, a, b, c, d);
  return shapes == CUBLAS_STATUS_SUCCESS ? check_types(matmul.product, a, b, c, d) : shapes;
}

bool aligned(const void* at, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(at) % std::max<uint64_t>(alignment, 1) == 0;
}

bool check_algorithm(const cublasLtMatmulAlgo_t* algorithm, const Matmul& matmul) {
  const std::array<const Operand*, 4> operands = {&matmul.a, &matmul.b, &matmul.c, &matmul.d};
  for (size_t i = 0; i < operands.size(); ++i) {
    const uint64_t promised = algorithm == nullptr ? 1 : algorithm->data[1 + i];
    if (!aligned(operands[i]->at, promised) ||
        !aligned(operands[i]->at, type_size(operands[i]->layout.type)))
      return false;
  }
  return algorithm == nullptr ||
         (algorithm->data[0] == kAlgorithm && matmul.workspace_bytes >= algorithm->data[5]);
}

bool takes_workspace(const Matmul& matmul) {
  return matmul.workspace_bytes == 0 ||
         (matmul.workspace != nullptr && aligned(matmul.workspace, kWorkspaceAlignment));
}

bool needs_bias(const Product& product) { return (product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

bool takes_scalars(Matmul& matmul, const void* alpha, const void* beta) {
  if (alpha == nullptr || beta == nullptr) return false;
  if (matmul.product.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
    matmul.device_alpha = alpha;
    matmul.device_beta = beta;
    return true;
  }
  matmul.alpha = read_scalar(matmul.product.scale, alpha);
  matmul.beta = read_scalar(matmul.product.scale, beta);
  return true;
}

// One, while it is queued.
class Queued {
 public:
  Queued(const Matmul& matmul, void* stream) : matmul_(matmul), stream_(stream) {}

  static void run(void* context, int lost) {
    const std::unique_ptr<Queued> self(static_cast<Queued*>(context));
    if (lost == 0 && self->use_workspace() && self->find_memory()) compute(self->matmul_);
  }

 private:
  // Before the operands are read: a workspace that is part of one spoils the result.
  bool use_workspace() {
    const size_t bytes = matmul_.workspace_bytes;
    if (bytes == 0) return true;
    void* const at = driver_link()->view(stream_, "cublasLtMatmul", matmul_.workspace, bytes, 1);
    if (at != nullptr) std::memset(at, kRubbish, bytes);
    return at != nullptr;
  }
  // From addresses to their views; false, with a violation, where one is not what it should be.
  bool find_memory() {
    const size_t scalar = type_size(matmul_.product.scale);
    if (matmul_.device_alpha != nullptr) {
      if (!view(matmul_.device_alpha, scalar, false) || !view(matmul_.device_beta, scalar, false))
        return false;
      matmul_.alpha = read_scalar(matmul_.product.scale, matmul_.device_alpha);
      matmul_.beta = read_scalar(matmul_.product.scale, matmul_.device_beta);
    }
    return view(matmul_.a, false) && view(matmul_.b, false) &&
           (matmul_.beta == 0 || view(matmul_.c, false)) && view(matmul_.d, true) && view_bias();
  }
  bool view_bias() {
    if (!needs_bias(matmul_.product)) return true;
    const Layout& d = matmul_.d.layout;
    const auto strides = static_cast<size_t>((d.batches - 1) * matmul_.product.bias_batch_stride);
    return view(matmul_.product.bias, (d.rows + strides) * type_size(d.type), false);
  }
  bool view(Operand& operand, bool writes) {
    return view(operand.at, operand.elements() * type_size(operand.layout.type), writes);
  }
  bool view(const void*& at, size_t bytes, bool writes) {
    at = driver_link()->view(stream_, "cublasLtMatmul", at, bytes, writes ? 1 : 0);
    return at != nullptr;
  }

  Matmul matmul_;
  void* const stream_;
};

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_BLAS_ENTRY cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                cublasLtMatmulPreference_t wanted, int count,
                                                cublasLtMatmulHeuristicResult_t results[],
                                                int* given) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!desc || !a || !b || !c || !d || !wanted || count <= 0 || !results || !given)
    return CUBLAS_STATUS_INVALID_VALUE;
  *given = 0;
  const Matmul matmul{product(desc), {layout(a)}, {layout(b)}, {layout(c)}, {layout(d)}};
  const cublasStatus_t status = check(matmul);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  results[0].algo.data[0] = kAlgorithm;
  for (size_t i = 0; i < 4; ++i)
    results[0].algo.data[1 + i] = std::min(preference(wanted).alignments[i], kMostAlignment);
  results[0].workspaceSize = std::min(preference(wanted).workspace_bytes, kWorkspace);
  results[0].algo.data[5] = results[0].workspaceSize;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *given = 1;
  return CUBLAS_STATUS_SUCCESS;
}

CUSIM_BLAS_ENTRY cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                                const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                                const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                cublasLtMatrixLayout_t d_layout,
                                const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!desc || !a || !b || !d || !a_layout || !b_layout || !c_layout || !d_layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  Matmul matmul{product(desc),
                {layout(a_layout), a},
                {layout(b_layout), b},
                {layout(c_layout), c},
                {layout(d_layout), d}};
  matmul.workspace = workspace;
  matmul.workspace_bytes = workspace_bytes;
  if (const cublasStatus_t status = check(matmul); status != CUBLAS_STATUS_SUCCESS) return status;
  if (!takes_scalars(matmul, alpha, beta) || !takes_workspace(matmul) ||
      !check_algorithm(algorithm, matmul) || (matmul.beta != 0 && c == nullptr) ||
      (needs_bias(matmul.product) && matmul.product.bias == nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  auto queued = std::make_unique<Queued>(matmul, stream);
  if (driver_link()->enqueue(stream, &Queued::run, queued.get()) != 0)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  static_cast<void>(queued.release());
  return CUBLAS_STATUS_SUCCESS;
}
