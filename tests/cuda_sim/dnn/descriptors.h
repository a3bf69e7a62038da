// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of the simulated cuDNN point to.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>

// The declaration is cudnn.h's, and so is the signature: another one does not compile.
#define CUSIM_DNN_ENTRY extern "C" __attribute__((visibility("default"))) cudnnStatus_t CUDNNWINAPI

namespace treenail::cuda_sim {

inline constexpr size_t kMostDims = 5;  // of what is computed here; the real one takes 8

struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  size_t rank = 0;
  std::array<int64_t, kMostDims> extents = {}, strides = {};

  int64_t elements() const;
};

struct Filter {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  size_t rank = 0;
  std::array<int64_t, kMostDims> extents = {};  // filters, channels, taps

  Tensor tensor() const;
};

struct Windows {
  size_t spatial = 0;
  std::array<int64_t, 3> pad = {}, stride = {}, dilation = {};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int64_t groups = 1;
};

struct Handle {
  void* stream = nullptr;
};

// Packed strides of a format.
std::array<int64_t, kMostDims> packed(const Tensor& tensor, cudnnTensorFormat_t format);

template <class T, class Descriptor>
T& of(Descriptor descriptor) {
  return *reinterpret_cast<T*>(descriptor);
}

}  // namespace treenail::cuda_sim
