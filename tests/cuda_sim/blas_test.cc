// SPDX-License-Identifier: Apache-2.0
// The simulated cuBLASLt: products in the stream's order, and what the vendor refuses.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/cuda_sim/loaded.h"

namespace treenail::test {
namespace {

// The driver first: the library looks for it when it is used.
const BlasTable& blas() {
  static const auto* const table = (cuda(), new BlasTable);
  return *table;
}

struct Matrix {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t ld;
  int batches = 1;
  int64_t stride = 0;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
};

class BlasTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_EQ(blas().cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    set_up_desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    ASSERT_EQ(blas().cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(blas().cublasLtMatmulDescDestroy(desc_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(blas().cublasLtMatmulPreferenceDestroy(preference_), CUBLAS_STATUS_SUCCESS);
    for (const cublasLtMatrixLayout_t layout : layouts_)
      EXPECT_EQ(blas().cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    CudaTest::TearDown();
  }

  void set_up_desc(cublasComputeType_t compute, cudaDataType_t scale) {
    if (desc_ != nullptr) blas().cublasLtMatmulDescDestroy(desc_);
    ASSERT_EQ(blas().cublasLtMatmulDescCreate(&desc_, compute, scale), CUBLAS_STATUS_SUCCESS);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(blas().cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasLtMatrixLayout_t layout(const Matrix& m) {
    cublasLtMatrixLayout_t& made = layouts_.emplace_back();
    EXPECT_EQ(blas().cublasLtMatrixLayoutCreate(&made, m.type, m.rows, m.cols, m.ld),
              CUBLAS_STATUS_SUCCESS);
    const auto put = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      EXPECT_EQ(blas().cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof(value)),
                CUBLAS_STATUS_SUCCESS);
    };
    put(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{m.batches});
    put(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.stride);
    put(CUBLASLT_MATRIX_LAYOUT_ORDER, static_cast<int32_t>(m.order));
    return made;
  }

  // With an algorithm for the layouts; the heuristic's answer where it has none.
  template <class S = float>
  cublasStatus_t multiply(S alpha, std::pair<CUdeviceptr, Matrix> a,
                          std::pair<CUdeviceptr, Matrix> b, S beta,
                          std::pair<CUdeviceptr, Matrix> d) {
    const cublasLtMatrixLayout_t al = layout(a.second), bl = layout(b.second),
                                 dl = layout(d.second);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    const cublasStatus_t status = blas().cublasLtMatmulAlgoGetHeuristic(
        handle_, desc_, al, bl, dl, dl, preference_, 1, &found, &count);
    EXPECT_EQ(count, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const auto at = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
    return blas().cublasLtMatmul(handle_, desc_, &alpha, at(a.first), al, at(b.first), bl, &beta,
                                 at(d.first), dl, at(d.first), dl, &found.algo, workspace_,
                                 found.workspaceSize, reinterpret_cast<cudaStream_t>(stream_));
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  void* workspace_ = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts_;
};

constexpr Matrix kTwo = {CUDA_R_32F, 2, 2, 2};

TEST_F(BlasTest, TheVersionIsTheHeaders) {
  EXPECT_EQ(blas().cublasLtGetVersion(), size_t{CUBLAS_VERSION});
}

TEST_F(BlasTest, AProductIsColumnMajorAndScaled) {
  const CUdeviceptr a = block_of<float>({1, 2, 3, 4, 5, 6}), b = block_of<float>({1, 2, 3}),
                    d = block_of<float>({10, 20});
  ASSERT_EQ(multiply(2.0f, {a, {CUDA_R_32F, 2, 3, 2}}, {b, {CUDA_R_32F, 3, 1, 3}}, 0.5f,
                     {d, {CUDA_R_32F, 2, 1, 2}}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 2), (std::vector<float>{49, 66}));
  free({a, b, d});
}

TEST_F(BlasTest, AWorkspaceIsAlignedAndAsLargeAsAskedFor) {
  const uint64_t most = 1 << 20;
  blas().cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &most, sizeof most);
  const CUdeviceptr a = block_of<float>({1, 2, 3, 4}), b = block_of<float>({1, 0, 0, 1}),
                    d = block_of<float>({0, 0, 0, 0}),
                    room = block_of<float>(std::vector<float>(4096));
  const auto product = [&](CUdeviceptr workspace) {
    workspace_ = reinterpret_cast<void*>(workspace);
    return multiply(1.0f, {a, kTwo}, {b, kTwo}, 0.0f, {d, kTwo});
  };
  EXPECT_EQ(product(0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(product(room + 64), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(product(room + 256), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values_of<float>(room, 64), std::vector<float>(64));
  EXPECT_NE(values_of<float>(room, 65).back(), 0);
  free({a, b, d, room});
}

TEST_F(BlasTest, OperandsAreTransposedAndHaveRoomBetweenColumns) {
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  const CUdeviceptr a = block_of<float>({1, 2, -1, 3, 4, -1}), b = block_of<float>({1, 0, 0, 1}),
                    d = block_of<float>({0, 0, 7, 0, 0});
  ASSERT_EQ(multiply(1.0f, {a, {CUDA_R_32F, 2, 2, 3}}, {b, kTwo}, 0.0f, {d, {CUDA_R_32F, 2, 2, 3}}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 5), (std::vector<float>{1, 3, 7, 2, 4}));
  free({a, b, d});
}

TEST_F(BlasTest, RowMajorIsTheOther) {
  const CUdeviceptr a = block_of<float>({1, 2, 3, 4}), b = block_of<float>({1, 1, 0, 1}),
                    d = block<float>(4);
  Matrix rows = kTwo;
  rows.order = CUBLASLT_ORDER_ROW;
  ASSERT_EQ(multiply(1.0f, {a, rows}, {b, rows}, 0.0f, {d, rows}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 4), (std::vector<float>{1, 3, 3, 7}));
  free({a, b, d});
}

TEST_F(BlasTest, BatchesHaveStridesAndOneMayServeAll) {
  const CUdeviceptr a = block_of<float>({1, 0, 0, 2}), b = block_of<float>({1, 2, 9, 3, 4}),
                    d = block<float>(4);
  ASSERT_EQ(multiply(1.0f, {a, {CUDA_R_32F, 2, 2, 2, 2, 0}}, {b, {CUDA_R_32F, 2, 1, 2, 2, 3}}, 0.0f,
                     {d, {CUDA_R_32F, 2, 1, 2, 2, 2}}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 4), (std::vector<float>{1, 4, 3, 8}));
  free({a, b, d});
}

TEST_F(BlasTest, EpiloguesAddABiasToRowsAndCutNegatives) {
  const CUdeviceptr a = block_of<float>({1, 0, 0, 1}), b = block_of<float>({1, -2, 3, -4}),
                    bias = block_of<float>({10, 1}), d = block<float>(4);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(bias));
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {b, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 4), (std::vector<float>{11, 0, 13, 0}));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU);
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {b, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_SUCCESS);
  EXPECT_NEAR(values_of<float>(d, 4)[0], 0.841192f, 1e-5f);
  free({a, b, bias, d});
}

TEST_F(BlasTest, NotANumberPassesAllEpiloguesAndABetaOfZeroReadsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const CUdeviceptr a = block_of<float>({1, 0, 0, 1}), b = block_of<float>({nan, 0, 1, 2}),
                    d = block_of<float>({nan, nan, nan, nan});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {b, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_SUCCESS);
  const auto values = values_of<float>(d, 4);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[2], 1);
  EXPECT_EQ(values[3], 2);
  free({a, b, d});
}

TEST_F(BlasTest, HalvesAreSummedAsFloats) {
  const std::vector<__half> ones(4096, __float2half(1.0f));
  const CUdeviceptr a = block_of(ones), d = block<__half>(1), wide = block<float>(1);
  const Matrix row = {CUDA_R_16F, 1, 4096, 1}, column = {CUDA_R_16F, 4096, 1, 4096};
  ASSERT_EQ(multiply(1.0f, {a, row}, {a, column}, 0.0f, {d, {CUDA_R_16F, 1, 1, 1}}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(__half2float(values_of<__half>(d, 1)[0]), 4096.0f);
  ASSERT_EQ(multiply(1.0f, {a, row}, {a, column}, 0.0f, {wide, {CUDA_R_32F, 1, 1, 1}}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(wide, 1)[0], 4096.0f);
  free({a, d, wide});
}

TEST_F(BlasTest, BrainFloatsAndDoubles) {
  const CUdeviceptr a = block_of<__nv_bfloat16>({__float2bfloat16(1.5f)}),
                    d = block<__nv_bfloat16>(1);
  const Matrix one = {CUDA_R_16BF, 1, 1, 1};
  ASSERT_EQ(multiply(1.0f, {a, one}, {a, one}, 0.0f, {d, one}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(__bfloat162float(values_of<__nv_bfloat16>(d, 1)[0]), 2.25f);
  set_up_desc(CUBLAS_COMPUTE_64F, CUDA_R_64F);
  const CUdeviceptr x = block_of<double>({1 + 1e-12}), y = block<double>(1);
  const Matrix wide = {CUDA_R_64F, 1, 1, 1};
  ASSERT_EQ(multiply(3.0, {x, wide}, {x, wide}, 0.0, {y, wide}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<double>(y, 1)[0], 3 * ((1 + 1e-12) * (1 + 1e-12)));
  free({a, d, x, y});
}

TEST_F(BlasTest, TheFastKindRoundsWhatItIsGiven) {
  set_up_desc(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
  const Matrix one = {CUDA_R_32F, 1, 1, 1};
  const CUdeviceptr a = block_of<float>({1 + 0x1p-12f}), b = block_of<float>({1 + 0x1p-10f}),
                    d = block<float>(1);
  ASSERT_EQ(multiply(1.0f, {a, one}, {b, one}, 0.0f, {d, one}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 1)[0], 1 + 0x1p-10f);
  free({a, b, d});
}

TEST_F(BlasTest, ScalarsMayLieOnTheDevice) {
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
  const CUdeviceptr a = block_of<float>({2}), d = block_of<float>({1}),
                    scalars = block_of<float>({3, 4});
  const cublasLtMatrixLayout_t one = layout({CUDA_R_32F, 1, 1, 1});
  const auto at = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  ASSERT_EQ(blas().cublasLtMatmul(handle_, desc_, at(scalars), at(a), one, at(a), one,
                                  at(scalars + 4), at(d), one, at(d), one, nullptr, nullptr, 0,
                                  reinterpret_cast<cudaStream_t>(stream_)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(d, 1)[0], 16);
  free({a, d, scalars});
}

TEST_F(BlasTest, AProductWaitsForItsTurnInTheStream) {
  const CUdeviceptr a = block_of<float>({1, 0, 0, 1}), d = block<float>(4);
  const int64_t before = cuda().cusim_count(0, CUSIM_LIBRARY_CALLS);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {a, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cuda().cuMemsetD32Async(d, 0, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cusim_count(0, CUSIM_LIBRARY_CALLS), before);
  cuda().cusim_hold(0, 0);
  EXPECT_EQ(values_of<float>(d, 4), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(cuda().cusim_count(0, CUSIM_LIBRARY_CALLS), before + 1);
  free({a, d});
}

TEST_F(BlasTest, ALostDeviceComputesNothing) {
  const CUdeviceptr a = block_of<float>({1, 0, 0, 1}), d = block_of<float>({5, 5, 5, 5});
  wait();
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {a, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_SUCCESS);
  cuda().cusim_lose(0, 0);
  EXPECT_EQ(multiply(1.0f, {a, kTwo}, {a, kTwo}, 0.0f, {d, kTwo}), CUBLAS_STATUS_EXECUTION_FAILED);
  cuda().cusim_hold(0, 0);
  cuda().cusim_restore(0);
  EXPECT_EQ(values_of<float>(d, 4), std::vector<float>(4, 5));
  free({a, d});
}

TEST_F(BlasTest, MemoryThatIsNotTheDevicesIsFound) {
  std::vector<float> host(4);
  const CUdeviceptr a = block_of<float>({1, 0, 0, 1}), small = block<float>(3);
  const auto at = reinterpret_cast<CUdeviceptr>(host.data());
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {at, kTwo}, 0.0f, {a, kTwo}), CUBLAS_STATUS_SUCCESS);
  wait();
  expect_violation("cublasLtMatmul on device 0 uses ");
  ASSERT_EQ(multiply(1.0f, {a, kTwo}, {a, kTwo}, 0.0f, {small, kTwo}), CUBLAS_STATUS_SUCCESS);
  wait();
  expect_violation("cublasLtMatmul writes 16 bytes at ");
  free({a, small});
}

TEST_F(BlasTest, ShapesThatDoNotFitAreInvalid) {
  const CUdeviceptr a = block<float>(64);
  const auto answer = [&](const Matrix& x, const Matrix& y, const Matrix& z) {
    return multiply(1.0f, {a, x}, {a, y}, 0.0f, {a, z});
  };
  EXPECT_EQ(answer({CUDA_R_32F, 2, 3, 2}, kTwo, kTwo), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(answer({CUDA_R_32F, 2, 2, 1}, kTwo, kTwo), CUBLAS_STATUS_INVALID_VALUE) << "ld";
  EXPECT_EQ(answer({CUDA_R_32F, 2, 2, 2, 2, 4}, kTwo, kTwo), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(answer({CUDA_R_32F, 0, 2, 2}, kTwo, {CUDA_R_32F, 0, 2, 2}),
            CUBLAS_STATUS_INVALID_VALUE);
  free({a});
}

TEST_F(BlasTest, TypesThatTheVendorDoesNotMultiplyAreNotSupported) {
  const CUdeviceptr a = block<double>(4);
  const auto answer = [&](cudaDataType_t x, cudaDataType_t y, cudaDataType_t z) {
    return multiply(1.0f, {a, {x, 1, 1, 1}}, {a, {y, 1, 1, 1}}, 0.0f, {a, {z, 1, 1, 1}});
  };
  EXPECT_EQ(answer(CUDA_R_32F, CUDA_R_16F, CUDA_R_32F), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(answer(CUDA_R_32F, CUDA_R_32F, CUDA_R_16F), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(answer(CUDA_R_16F, CUDA_R_16F, CUDA_R_16BF), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(answer(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F), CUBLAS_STATUS_NOT_SUPPORTED) << "compute";
  set_up_desc(CUBLAS_COMPUTE_64F, CUDA_R_64F);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(answer(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F), CUBLAS_STATUS_NOT_SUPPORTED) << "epilogue";
  free({a});
}

TEST_F(BlasTest, AttributesOfTheWrongSizeAreInvalid) {
  const int64_t wide = CUBLAS_OP_T;
  EXPECT_EQ(blas().cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &wide,
                                                  sizeof(wide)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(blas().cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(BlasTest, AnAlgorithmHoldsItsUserToThePromisedAlignment) {
  const CUdeviceptr a = block_of(std::vector<float>(8));
  const Matrix one = {CUDA_R_32F, 1, 1, 1};
  EXPECT_EQ(multiply(1.0f, {a + 4, one}, {a, one}, 0.0f, {a, one}), CUBLAS_STATUS_INVALID_VALUE);
  const uint32_t four = 4;
  ASSERT_EQ(blas().cublasLtMatmulPreferenceSetAttribute(
                preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &four, sizeof(four)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(1.0f, {a + 4, one}, {a, one}, 0.0f, {a, one}), CUBLAS_STATUS_SUCCESS);
  wait();
  free({a});
}

}  // namespace
}  // namespace treenail::test
