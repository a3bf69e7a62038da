// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/products/blas_host.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cuda/driver/entries.h"
#include "kernels/cuda/driver/per_device.h"
#include "kernels/cuda/driver/precision.h"

namespace treenail::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;  // as NVIDIA advises for Hopper
constexpr size_t kWorkspaceAlignment = 256;
constexpr uint32_t kUsualAlignment = 16;  // of the widest loads

struct Blas {
#define TN_ENTRY(name) decltype(&::name) name = nullptr;
#include "kernels/cuda/driver/blas_entries.inc"
#undef TN_ENTRY
};

Blas* open_blas() {
  auto table_ = std::make_unique<Blas>();
  Blas& table = *table_;
#define TN_ENTRY(name) TN_CUDA_ROW(name)
  const Entry entries[] = {
#include "kernels/cuda/driver/blas_entries.inc"
  };
#undef TN_ENTRY
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  load_entries("cuBLASLt, for products on a GPU,", concat("libcublasLt.so.", major).c_str(),
               concat("cuBLAS ", major), entries);
  return table_.release();
}

const Blas& blas() {
  static std::atomic<Blas*> opened{nullptr};
  return made_once(opened, open_blas);
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    throw resource_exhausted(call, "(): no memory is left for cuBLASLt");
  if (status == CUBLAS_STATUS_EXECUTION_FAILED)
    throw error_of(Code::kUnavailable, {call, "(): the GPU has failed"});
  throw internal_error(call, "(): cuBLASLt's status ", static_cast<int>(status));
}

cublasLtHandle_t handle_of(CudaDevice& device) {
  static PerDevice<cublasLtHandle_t> handles;
  return handles.of(device, [] {
    auto handle = std::make_unique<cublasLtHandle_t>();
    check(blas().cublasLtCreate(handle.get()), "cublasLtCreate");
    return handle.release();
  });
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// Rows and columns as cuBLAS counts them: a row-major matrix is the transposed one by columns.
cublasLtMatrixLayout_t layout_of(DType dtype, int64_t rows, int64_t columns, int64_t batch,
                                 int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(blas().cublasLtMatrixLayoutCreate(&layout, type_of(dtype), static_cast<uint64_t>(rows),
                                          static_cast<uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  const auto count = static_cast<int32_t>(batch);
  check(blas().cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count),
        "cublasLtMatrixLayoutSetAttribute");
  check(blas().cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride),
        "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
         bool transposed) {
  const cublasOperation_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(blas().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

class Preference {
 public:
  explicit Preference(uint32_t alignment) {
    check(blas().cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(attribute, alignment);
  }
  ~Preference() { blas().cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check(blas().cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreference_t preference_ = nullptr;
};

// Scratch memory is aligned to less than cuBLASLt asks of its workspace.
void* aligned_workspace(std::byte* scratch) {
  const auto at = reinterpret_cast<uintptr_t>(scratch);
  return scratch + (kWorkspaceAlignment - at % kWorkspaceAlignment) % kWorkspaceAlignment;
}

cublasComputeType_t computation_of(DType dtype) {
  if (dtype == DType::kFloat64) return CUBLAS_COMPUTE_64F;
  const bool cut = dtype == DType::kFloat32 && takes_tf32();
  return cut ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

bool is_aligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % kUsualAlignment == 0; }

}  // namespace

// The first operand of cuBLAS is B, for it computes the transposed product.
BlasProduct::BlasProduct(CudaDevice& device, const StridedProduct& p)
    : device_(device), is_double_(p.dtype == DType::kFloat64), handle_(handle_of(device)) {
  check(blas().cublasLtMatmulDescCreate(&operation_, computation_of(p.dtype),
                                        is_double_ ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, p.trans_b);
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, p.trans_a);
  b_ = layout_of(p.dtype, p.trans_b ? p.k : p.n, p.trans_b ? p.n : p.k, p.batch, p.stride_b);
  a_ = layout_of(p.dtype, p.trans_a ? p.m : p.k, p.trans_a ? p.k : p.m, p.batch, p.stride_a);
  c_ = layout_of(p.dtype, p.n, p.m, p.batch, p.stride_c);
  aligned_ = choose(kUsualAlignment);
  any_ = choose(static_cast<uint32_t>(dtype_size(p.dtype)));
}

BlasProduct::~BlasProduct() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) blas().cublasLtMatrixLayoutDestroy(layout);
  blas().cublasLtMatmulDescDestroy(operation_);
}

BlasProduct::Algorithm BlasProduct::choose(uint32_t alignment) const {
  const Preference preference(alignment);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  const cublasStatus_t status = blas().cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_, b_, a_, c_, c_, preference.get(), 1, &result, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
    throw unimplemented("cuBLASLt has no algorithm for this product");
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  return {result.algo, result.workspaceSize};
}

size_t BlasProduct::scratch_bytes() const {
  const size_t workspace = std::max(aligned_.workspace_bytes, any_.workspace_bytes);
  return workspace == 0 ? 0 : workspace + kWorkspaceAlignment;
}

void BlasProduct::launch(const void* a, const void* b, void* c, std::byte* scratch) const {
  CUstream const stream = device_.enter();
  const Algorithm& algorithm = is_aligned(a) && is_aligned(b) && is_aligned(c) ? aligned_ : any_;
  const double one[] = {1, 0};
  const float one_float[] = {1, 0};
  const void* const alpha = is_double_ ? static_cast<const void*>(&one[0]) : &one_float[0];
  const void* const beta = is_double_ ? static_cast<const void*>(&one[1]) : &one_float[1];
  check(blas().cublasLtMatmul(handle_, operation_, alpha, b, b_, a, a_, beta, c, c_, c, c_,
                              &algorithm.choice, aligned_workspace(scratch),
                              algorithm.workspace_bytes, stream),
        "cublasLtMatmul");
}

}  // namespace treenail::cuda
