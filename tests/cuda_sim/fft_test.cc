// SPDX-License-Identifier: Apache-2.0
// The simulated cuFFT: transforms in the stream's order, and what the vendor refuses.
#include <cufft.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <numbers>
#include <thread>
#include <vector>

#include "tests/cuda_sim/loaded.h"

namespace treenail::test {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

// The driver first: the library looks for it when it is used.
const FftTable& fft() {
  static const auto* const table = (cuda(), new FftTable);
  return *table;
}

template <class T>
T* at(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

class FftTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_EQ(fft().cufftCreate(&plan_), CUFFT_SUCCESS);
    ASSERT_EQ(fft().cufftSetAutoAllocation(plan_, 0), CUFFT_SUCCESS);
    work_area_ = block<char>(16384);
  }
  void TearDown() override {
    EXPECT_EQ(fft().cufftDestroy(plan_), CUFFT_SUCCESS);
    wait();
    free({work_area_});
    CudaTest::TearDown();
  }

  cufftResult make(std::vector<long long> extents, cufftType type, long long batch = 1) {
    return fft().cufftMakePlanMany64(plan_, static_cast<int>(extents.size()), extents.data(),
                                     nullptr, 1, 0, nullptr, 1, 0, type, batch, &work_bytes_);
  }
  // Ready to be executed.
  void set_up(const std::vector<long long>& extents, cufftType type, long long batch = 1) {
    ASSERT_EQ(make(extents, type, batch), CUFFT_SUCCESS);
    ASSERT_EQ(fft().cufftSetStream(plan_, reinterpret_cast<cudaStream_t>(stream_)), CUFFT_SUCCESS);
    ASSERT_EQ(fft().cufftSetWorkArea(plan_, at<void>(work_area_)), CUFFT_SUCCESS);
  }
  cufftResult complex(CUdeviceptr from, CUdeviceptr to, int direction = CUFFT_FORWARD) {
    return fft().cufftExecC2C(plan_, at<cufftComplex>(from), at<cufftComplex>(to), direction);
  }

  cufftHandle plan_ = 0;
  size_t work_bytes_ = 0;
  CUdeviceptr work_area_ = 0;
};

void expect_near(const std::vector<C>& found, const std::vector<C>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LT(std::abs(found[i] - wanted[i]), 1e-5f) << i;
}

TEST_F(FftTest, AnImpulseGivesTheRootsOfUnity) {
  set_up({4}, CUFFT_C2C);
  const CUdeviceptr x = block_of<C>({0, 1, 0, 0}), y = block<C>(4);
  ASSERT_EQ(complex(x, y), CUFFT_SUCCESS);
  expect_near(values_of<C>(y, 4), {{1, 0}, {0, -1}, {-1, 0}, {0, 1}});
  ASSERT_EQ(complex(x, y, CUFFT_INVERSE), CUFFT_SUCCESS);
  expect_near(values_of<C>(y, 4), {{1, 0}, {0, 1}, {-1, 0}, {0, -1}});
  free({x, y});
}

TEST_F(FftTest, AnyLengthIsAsDefinedInDouble) {
  constexpr int kN = 37;
  set_up({kN}, CUFFT_Z2Z);
  std::vector<Z> x, wanted(kN);
  for (int i = 0; i < kN; ++i) x.emplace_back(std::sin(i * 1.7), std::cos(i * i * 0.3));
  for (int k = 0; k < kN; ++k) {
    for (int j = 0; j < kN; ++j)
      wanted[k] += x[j] * std::polar(1.0, -2 * std::numbers::pi * (j * k % kN) / kN);
  }
  const CUdeviceptr from = block_of(x), to = block<Z>(kN);
  ASSERT_EQ(fft().cufftExecZ2Z(plan_, at<cufftDoubleComplex>(from), at<cufftDoubleComplex>(to),
                               CUFFT_FORWARD),
            CUFFT_SUCCESS);
  const std::vector<Z> found = values_of<Z>(to, kN);
  for (int k = 0; k < kN; ++k) EXPECT_LT(std::abs(found[k] - wanted[k]), 1e-13) << k;
  free({from, to});
}

TEST_F(FftTest, ArraysOfABatchHaveSeveralAxes) {
  set_up({2, 2}, CUFFT_C2C, 2);
  const CUdeviceptr x = block_of<C>({1, 2, 3, 4, 0, 0, 1, 0}), y = block<C>(8);
  ASSERT_EQ(complex(x, y), CUFFT_SUCCESS);
  expect_near(values_of<C>(y, 8), {10, -2, -4, 0, 1, 1, -1, -1});
  free({x, y});
}

TEST_F(FftTest, RealNumbersHaveHalfASpectrum) {
  set_up({5}, CUFFT_R2C, 2);
  const CUdeviceptr x = block_of<float>({1, 0, 0, 0, 0, 1, 1, 1, 1, 1}), y = block<C>(6);
  ASSERT_EQ(fft().cufftExecR2C(plan_, at<cufftReal>(x), at<cufftComplex>(y)), CUFFT_SUCCESS);
  expect_near(values_of<C>(y, 6), {1, 1, 1, 5, 0, 0});
  EXPECT_EQ(values_of<float>(x, 2), (std::vector<float>{1, 0}));
  free({x, y});
}

TEST_F(FftTest, BackToRealNumbersTheInputIsSpoiled) {
  set_up({2, 4}, CUFFT_C2R);
  const CUdeviceptr x = block_of<C>({36, {-4, 4}, -4, -16, 0, 0}), y = block<float>(8);
  ASSERT_EQ(fft().cufftExecC2R(plan_, at<cufftComplex>(x), at<cufftReal>(y)), CUFFT_SUCCESS);
  const auto found = values_of<float>(y, 8);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(found[i], 8 * (i + 1), 1e-4f) << i;
  EXPECT_NE(values_of<C>(x, 1)[0], C(36));
  free({x, y});
}

TEST_F(FftTest, WhatNoRealSignalHasIsLeftOpen) {
  set_up({4}, CUFFT_C2R);
  const CUdeviceptr x = block_of<C>({1, {2, 3}, {0, 1}}), y = block<float>(4);
  ASSERT_EQ(fft().cufftExecC2R(plan_, at<cufftComplex>(x), at<cufftReal>(y)), CUFFT_SUCCESS);
  EXPECT_TRUE(std::isnan(values_of<float>(y, 4)[0]));
  free({x, y});
}

TEST_F(FftTest, AWorkAreaIsAlignedAndOverwritten) {
  ASSERT_EQ(make({8}, CUFFT_C2C), CUFFT_SUCCESS);
  ASSERT_GT(work_bytes_, 0u);
  ASSERT_EQ(fft().cufftSetStream(plan_, reinterpret_cast<cudaStream_t>(stream_)), CUFFT_SUCCESS);
  const CUdeviceptr x = block<C>(8), y = block<C>(8);
  ASSERT_EQ(cuda().cuMemsetD32Async(work_area_, 0, work_bytes_ / 4 + 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(complex(x, y), CUFFT_INVALID_VALUE) << "none";
  EXPECT_EQ(fft().cufftSetWorkArea(plan_, at<void>(work_area_ + 64)), CUFFT_INVALID_VALUE);
  EXPECT_EQ(fft().cufftSetWorkArea(plan_, at<void>(work_area_)), CUFFT_SUCCESS);
  EXPECT_EQ(complex(x, y), CUFFT_SUCCESS);
  const auto words = values_of<int>(work_area_, work_bytes_ / 4 + 1);
  EXPECT_NE(words.front(), 0);
  EXPECT_NE(words[work_bytes_ / 4 - 1], 0);
  EXPECT_EQ(words.back(), 0);
  free({x, y});
}

TEST_F(FftTest, PlansAreMadeOnceOfSizesAndTypesThatThereAre) {
  EXPECT_EQ(make({0}, CUFFT_C2C), CUFFT_INVALID_SIZE);
  EXPECT_EQ(make({4}, CUFFT_C2C, 0), CUFFT_INVALID_SIZE);
  EXPECT_EQ(make({2, 2, 2, 2}, CUFFT_C2C), CUFFT_INVALID_VALUE);
  EXPECT_EQ(make({4}, static_cast<cufftType>(7)), CUFFT_INVALID_TYPE);
  long long four = 4;
  EXPECT_EQ(fft().cufftMakePlanMany64(plan_, 1, &four, &four, 1, 4, nullptr, 1, 0, CUFFT_C2C, 1,
                                      &work_bytes_),
            CUFFT_NOT_SUPPORTED);
  const CUdeviceptr x = block<C>(4), y = block<C>(4);
  EXPECT_EQ(complex(x, y), CUFFT_INVALID_PLAN);
  EXPECT_EQ(make({4}, CUFFT_C2C), CUFFT_SUCCESS);
  EXPECT_EQ(make({4}, CUFFT_C2C), CUFFT_INVALID_PLAN);
  EXPECT_EQ(fft().cufftDestroy(plan_ + 1000), CUFFT_INVALID_PLAN);
  free({x, y});
}

TEST_F(FftTest, ExecutionIsOfThePlansTypeOnAlignedMemory) {
  set_up({4}, CUFFT_R2C);
  const CUdeviceptr x = block<float>(6), y = block<C>(4);
  const auto real = [&](CUdeviceptr from) {
    return fft().cufftExecR2C(plan_, at<cufftReal>(from), at<cufftComplex>(y));
  };
  EXPECT_EQ(complex(x, y), CUFFT_INVALID_PLAN);
  EXPECT_EQ(real(0), CUFFT_INVALID_VALUE);
  EXPECT_EQ(real(x + 4), CUFFT_INVALID_VALUE);
  EXPECT_EQ(real(x + 8), CUFFT_SUCCESS);
  wait();
  free({x, y});
}

TEST_F(FftTest, APlanIsForOneThreadAtATime) {
  ASSERT_EQ(make({8}, CUFFT_C2C), CUFFT_SUCCESS);
  std::atomic<bool> seen{false};
  const auto use = [&] {
    for (int i = 0; i < 50'000'000 && !seen; ++i) {
      if (fft().cufftSetWorkArea(plan_, at<void>(work_area_)) == CUFFT_INTERNAL_ERROR) seen = true;
    }
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_TRUE(seen);
}

TEST_F(FftTest, ATransformWaitsForItsTurnInTheStream) {
  set_up({2}, CUFFT_C2C);
  const CUdeviceptr x = block_of<C>({1, 2}), y = block<C>(2);
  const int64_t before = cuda().cusim_count(0, CUSIM_LIBRARY_CALLS);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(complex(x, y), CUFFT_SUCCESS);
  ASSERT_EQ(cuda().cuMemsetD32Async(y, 0, 2, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cusim_count(0, CUSIM_LIBRARY_CALLS), before);
  cuda().cusim_hold(0, 0);
  expect_near(values_of<C>(y, 2), {0, -1});
  EXPECT_EQ(cuda().cusim_count(0, CUSIM_LIBRARY_CALLS), before + 1);
  free({x, y});
}

TEST_F(FftTest, ALostDeviceTransformsNothing) {
  set_up({2}, CUFFT_C2C);
  const CUdeviceptr x = block_of<C>({1, 2}), y = block_of<C>({5, 5});
  wait();
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(complex(x, y), CUFFT_SUCCESS);
  cuda().cusim_lose(0, 0);
  EXPECT_EQ(complex(x, y), CUFFT_EXEC_FAILED);
  cuda().cusim_hold(0, 0);
  cuda().cusim_restore(0);
  expect_near(values_of<C>(y, 2), {5, 5});
  free({x, y});
}

TEST_F(FftTest, MemoryThatIsNotTheDevicesIsFound) {
  set_up({2}, CUFFT_C2C);
  std::vector<C> host(2);
  const CUdeviceptr x = block<C>(2), small = block<C>(1);
  ASSERT_EQ(complex(reinterpret_cast<CUdeviceptr>(host.data()), x), CUFFT_SUCCESS);
  wait();
  expect_violation("cufftExec on device 0 uses ");
  ASSERT_EQ(complex(x, small), CUFFT_SUCCESS);
  wait();
  expect_violation("cufftExec writes 16 bytes at ");
  free({x, small});
}

}  // namespace
}  // namespace treenail::test
