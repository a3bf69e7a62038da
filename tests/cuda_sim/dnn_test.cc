// SPDX-License-Identifier: Apache-2.0
// The simulated cuDNN: convolutions in the stream's order, and what the vendor refuses.
#if __has_include(<cudnn.h>)
#include <cudnn.h>

#include <string>
#include <vector>

#include "tests/cuda_sim/loaded.h"

namespace treenail::test {
namespace {

const std::string& library_name() {
  static const std::string name = concat("libcudnn.so.", CUDNN_MAJOR);
  return name;
}

struct DnnTable {
  void* const library = open_simulated(library_name().c_str());
#define TN_ENTRY(name) decltype(&::name) name = entry<decltype(&::name)>(library, TN_SYMBOL(name));
#include "kernels/cuda/driver/dnn_entries.inc"
#undef TN_ENTRY
};

// The driver first: the library looks for it when it is used.
const DnnTable& dnn() {
  static const auto* const table = (cuda(), new DnnTable);
  return *table;
}

// Strides of packed extents whose channels come second.
std::vector<int> packed(const std::vector<int>& extents) {
  std::vector<int> strides(extents.size(), 1);
  for (size_t i = extents.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

class DnnTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (handle_ == nullptr) ASSERT_EQ(dnn().cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(dnn().cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream_)),
              CUDNN_STATUS_SUCCESS);
    for (cudnnTensorDescriptor_t* tensor : {&x_, &y_})
      ASSERT_EQ(dnn().cudnnCreateTensorDescriptor(tensor), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(dnn().cudnnCreateFilterDescriptor(&w_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(dnn().cudnnCreateConvolutionDescriptor(&windows_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    for (cudnnTensorDescriptor_t tensor : {x_, y_})
      EXPECT_EQ(dnn().cudnnDestroyTensorDescriptor(tensor), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(dnn().cudnnDestroyFilterDescriptor(w_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(dnn().cudnnDestroyConvolutionDescriptor(windows_), CUDNN_STATUS_SUCCESS);
    CudaTest::TearDown();
  }

  cudnnStatus_t set(cudnnTensorDescriptor_t tensor, const std::vector<int>& extents,
                    cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return dnn().cudnnSetTensorNdDescriptor(tensor, type, static_cast<int>(extents.size()),
                                            extents.data(), packed(extents).data());
  }
  cudnnStatus_t set_filter(const std::vector<int>& extents,
                           cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return dnn().cudnnSetFilterNdDescriptor(w_, type, CUDNN_TENSOR_NCHW,
                                            static_cast<int>(extents.size()), extents.data());
  }
  cudnnStatus_t set_windows(std::vector<int> pad, std::vector<int> stride,
                            std::vector<int> dilation, cudnnDataType_t sums = CUDNN_DATA_FLOAT) {
    return dnn().cudnnSetConvolutionNdDescriptor(windows_, static_cast<int>(pad.size()), pad.data(),
                                                 stride.data(), dilation.data(),
                                                 CUDNN_CROSS_CORRELATION, sums);
  }
  // A row of four, a filter of two taps, a row of three.
  void set_up_row(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    ASSERT_EQ(set(x_, {1, 1, 1, 4}, type), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(set_filter({1, 1, 1, 2}, type), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(set(y_, {1, 1, 1, 3}, type), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(set_windows({0, 0}, {1, 1}, {1, 1}), CUDNN_STATUS_SUCCESS);
  }
  static void* at(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

  template <class S = float>
  cudnnStatus_t forward(CUdeviceptr x, CUdeviceptr w, CUdeviceptr y, S beta = 0) {
    const S alpha = 1;
    return dnn().cudnnConvolutionForward(handle_, &alpha, x_, at(x), w_, at(w), windows_,
                                         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                         &beta, y_, at(y));
  }
  cudnnStatus_t to_input(
      CUdeviceptr w, CUdeviceptr dy, CUdeviceptr dx, CUdeviceptr room, size_t bytes,
      cudnnConvolutionBwdDataAlgo_t algorithm = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) {
    const float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardData(handle_, &one, w_, at(w), y_, at(dy), windows_,
                                              algorithm, at(room), bytes, &zero, x_, at(dx));
  }
  cudnnStatus_t to_filter(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dw, CUdeviceptr room,
                          size_t bytes) {
    const float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardFilter(handle_, &one, x_, at(x), y_, at(dy), windows_,
                                                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, at(room),
                                                bytes, &zero, w_, at(dw));
  }

  static constexpr size_t kRoom = 4096;
  // One for all tests: the plugin destroys none, so that nothing here could.
  static inline cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t windows_ = nullptr;
};

TEST_F(DnnTest, AFilterIsNotTurnedAndTheOldResultCounts) {
  set_up_row();
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4}), w = block_of<float>({10, 1}),
                    y = block_of<float>({100, 200, 300});
  ASSERT_EQ(forward(x, w, y, 1.0f), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(y, 3), (std::vector<float>{112, 223, 334}));
  free({x, w, y});
}

TEST_F(DnnTest, PaddingStrideAndDilation) {
  ASSERT_EQ(set(x_, {1, 1, 1, 5}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set_filter({1, 1, 1, 2}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set(y_, {1, 1, 1, 3}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set_windows({0, 1}, {1, 2}, {1, 2}), CUDNN_STATUS_SUCCESS);
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4, 5}), w = block_of<float>({10, 1}),
                    y = block<float>(3);
  ASSERT_EQ(forward(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(y, 3), (std::vector<float>{2, 24, 40}));
  free({x, w, y});
}

TEST_F(DnnTest, GroupsKeepToTheirChannels) {
  ASSERT_EQ(set(x_, {1, 2, 1, 2}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set_filter({4, 1, 1, 1}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set(y_, {1, 4, 1, 2}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set_windows({0, 0}, {1, 1}, {1, 1}), CUDNN_STATUS_SUCCESS);
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4}), w = block_of<float>({1, 10, 100, 1000}),
                    y = block<float>(8);
  EXPECT_EQ(forward(x, w, y), CUDNN_STATUS_BAD_PARAM) << "one group has two channels";
  ASSERT_EQ(dnn().cudnnSetConvolutionGroupCount(windows_, 2), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(forward(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(y, 8), (std::vector<float>{1, 2, 10, 20, 300, 400, 3000, 4000}));
  free({x, w, y});
}

TEST_F(DnnTest, GradientsUseTheirWorkspace) {
  set_up_row();
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4}), w = block_of<float>({10, 1}),
                    dy = block_of<float>({1, 2, 3}), dx = block<float>(4), dw = block<float>(2),
                    room = block_of<float>(std::vector<float>(kRoom / sizeof(float)));
  ASSERT_EQ(to_input(w, dy, dx, room, kRoom), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(dx, 4), (std::vector<float>{10, 21, 32, 3}));
  EXPECT_NE(values_of<float>(room, 1)[0], 0);
  ASSERT_EQ(to_filter(x, dy, dw, room, kRoom), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(values_of<float>(dw, 2), (std::vector<float>{14, 20}));
  EXPECT_EQ(to_filter(x, dy, dw, room, kRoom - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(to_filter(x, dy, dw, 0, kRoom), CUDNN_STATUS_BAD_PARAM);
  free({x, w, dy, dx, dw, room});
}

// Whoever takes the first of the list finds other bits the next time.
TEST_F(DnnTest, TheFirstAlgorithmOfAGradientIsNotRepeatable) {
  set_up_row();
  cudnnConvolutionBwdDataAlgoPerf_t found[3];
  int count = 0;
  ASSERT_EQ(dnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, windows_, x_, 3,
                                                              &count, found),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 3);
  EXPECT_EQ(found[0].determinism, CUDNN_NON_DETERMINISTIC);
  EXPECT_EQ(found[1].determinism, CUDNN_DETERMINISTIC);
  EXPECT_EQ(found[1].memory, kRoom);
  EXPECT_EQ(found[2].status, CUDNN_STATUS_NOT_SUPPORTED);
  const CUdeviceptr w = block_of<float>({3, 1}), dy = block_of<float>({1, 2, 3}),
                    dx = block<float>(4);
  const auto gradient = [&] {
    EXPECT_EQ(to_input(w, dy, dx, 0, 0, found[0].algo), CUDNN_STATUS_SUCCESS);
    return values_of<float>(dx, 4);
  };
  EXPECT_NE(gradient(), gradient());
  free({w, dy, dx});
}

TEST_F(DnnTest, AConvolutionWaitsForItsTurnInTheStream) {
  set_up_row();
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4}), w = block_of<float>({1, 1}),
                    y = block<float>(3);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(forward(x, w, y), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cuda().cuMemsetD32Async(y, 0, 1, stream_), CUDA_SUCCESS);
  cuda().cusim_hold(0, 0);
  EXPECT_EQ(values_of<float>(y, 3), (std::vector<float>{0, 5, 7}));
  free({x, w, y});
}

TEST_F(DnnTest, MemoryThatIsNotTheDevicesIsFound) {
  set_up_row();
  alignas(16) float host[4] = {};
  const CUdeviceptr x = block_of<float>({1, 2, 3, 4}), w = block_of<float>({1, 1}),
                    small = block<float>(2);
  ASSERT_EQ(forward(reinterpret_cast<CUdeviceptr>(host), w, small), CUDNN_STATUS_SUCCESS);
  wait();
  expect_violation("cudnnConvolution on device 0 uses ");
  ASSERT_EQ(forward(x, w, small), CUDNN_STATUS_SUCCESS);
  wait();
  expect_violation("cudnnConvolution writes 12 bytes at ");
  free({x, w, small});
}

TEST_F(DnnTest, WhatDoesNotFitIsABadParameter) {
  set_up_row();
  const CUdeviceptr x = block<float>(8), w = block<float>(2), y = block<float>(8);
  EXPECT_EQ(forward(x + 4, w, y), CUDNN_STATUS_BAD_PARAM) << "not aligned";
  ASSERT_EQ(set(y_, {1, 1, 1, 4}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(forward(x, w, y), CUDNN_STATUS_BAD_PARAM) << "three windows";
  EXPECT_EQ(set(y_, {1, 1, 0, 4}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_windows({0, -1}, {1, 1}, {1, 1}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_windows({0, 0}, {1, 0}, {1, 1}), CUDNN_STATUS_BAD_PARAM);
  free({x, w, y});
}

TEST_F(DnnTest, TypesAndLayoutsThatTheVendorHasNotAreNotSupported) {
  set_up_row(CUDNN_DATA_DOUBLE);
  const CUdeviceptr x = block<double>(4), w = block<double>(2), y = block<double>(3);
  EXPECT_EQ(forward<double>(x, w, y), CUDNN_STATUS_NOT_SUPPORTED) << "doubles summed as floats";
  ASSERT_EQ(set_windows({0, 0}, {1, 1}, {1, 1}, CUDNN_DATA_DOUBLE), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(forward<double>(x, w, y), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(set(x_, {1, 1, 1, 4}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(forward<double>(x, w, y), CUDNN_STATUS_NOT_SUPPORTED) << "two types";
  EXPECT_EQ(set(x_, {1, 1, 4}), CUDNN_STATUS_NOT_SUPPORTED) << "three axes";
  wait();
  free({x, w, y});
}

TEST(RealDnnTest, ExportsWhatThePluginUses) {
  const std::string path = TREENAIL_CUDA_LIBRARIES "/" + library_name();
  expect_exported(path.c_str(), {
#define TN_ENTRY(name) TN_SYMBOL(name),
#include "kernels/cuda/driver/dnn_entries.inc"
#undef TN_ENTRY
                                });
}

}  // namespace
}  // namespace treenail::test
#endif
