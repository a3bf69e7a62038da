// SPDX-License-Identifier: Apache-2.0
// Handles and descriptors of the simulated cuDNN. What has no sense is refused when it is set, as
// the vendor documents.
#include "tests/cuda_sim/dnn/descriptors.h"

#include <algorithm>
#include <cstdlib>

#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

template <class T, class Descriptor>
cudnnStatus_t create(Descriptor* made) {
  if (made == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *made = reinterpret_cast<Descriptor>(new T);
  return CUDNN_STATUS_SUCCESS;
}

template <class T, class Descriptor>
cudnnStatus_t destroy(Descriptor descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  delete reinterpret_cast<T*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

bool is_known(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

bool is_rank(int n) { return n >= 4 && n <= static_cast<int>(kMostDims); }

template <class Extents>
bool take(Extents& to, const int from[], int n, int least) {
  for (int i = 0; i < n; ++i) {
    if (from[i] < least) return false;
    to[static_cast<size_t>(i)] = from[i];
  }
  return true;
}

}  // namespace

int64_t Tensor::elements() const {
  int64_t n = 1;
  for (size_t i = 0; i < rank; ++i) n *= extents[i];
  return n;
}

std::array<int64_t, kMostDims> packed(const Tensor& tensor, cudnnTensorFormat_t format) {
  std::array<int64_t, kMostDims> strides = {};
  const bool last = format == CUDNN_TENSOR_NHWC;
  int64_t step = last ? tensor.extents[1] : 1;
  if (last) strides[1] = 1;
  for (size_t i = tensor.rank; i-- > 0;) {
    if (last && i == 1) continue;
    strides[i] = step;
    step *= tensor.extents[i];
  }
  return strides;
}

Tensor Filter::tensor() const {
  Tensor made{type, rank, extents, {}};
  made.strides = packed(made, format);
  return made;
}

}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_DNN_ENTRY cudnnCreate(cudnnHandle_t* handle) {
  if (driver_link() == nullptr || std::getenv("TREENAIL_CUDA_SIM_NO_DNN") != nullptr)
    return CUDNN_STATUS_NOT_INITIALIZED;
  return create<Handle>(handle);
}

CUSIM_DNN_ENTRY cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  of<Handle>(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) const char* CUDNNWINAPI
cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

CUSIM_DNN_ENTRY cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  return create<Tensor>(descriptor);
}
CUSIM_DNN_ENTRY cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return destroy<Tensor>(descriptor);
}
CUSIM_DNN_ENTRY cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int rank, const int extents[], const int strides[]) {
  if (descriptor == nullptr || extents == nullptr || strides == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  if (!is_known(type) || !is_rank(rank)) return CUDNN_STATUS_NOT_SUPPORTED;
  Tensor made{type, static_cast<size_t>(rank), {}, {}};
  if (!take(made.extents, extents, rank, 1) || !take(made.strides, strides, rank, 1))
    return CUDNN_STATUS_BAD_PARAM;
  of<Tensor>(descriptor) = made;
  return CUDNN_STATUS_SUCCESS;
}

CUSIM_DNN_ENTRY cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  return create<Filter>(descriptor);
}
CUSIM_DNN_ENTRY cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return destroy<Filter>(descriptor);
}
CUSIM_DNN_ENTRY cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                           cudnnTensorFormat_t format, int rank,
                                           const int extents[]) {
  if (descriptor == nullptr || extents == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (!is_known(type) || !is_rank(rank) || format == CUDNN_TENSOR_NCHW_VECT_C)
    return CUDNN_STATUS_NOT_SUPPORTED;
  Filter made{type, format, static_cast<size_t>(rank), {}};
  if (!take(made.extents, extents, rank, 1)) return CUDNN_STATUS_BAD_PARAM;
  of<Filter>(descriptor) = made;
  return CUDNN_STATUS_SUCCESS;
}

CUSIM_DNN_ENTRY cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  return create<Windows>(descriptor);
}
CUSIM_DNN_ENTRY cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return destroy<Windows>(descriptor);
}
CUSIM_DNN_ENTRY cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int n,
                                                const int pad[], const int stride[],
                                                const int dilation[], cudnnConvolutionMode_t mode,
                                                cudnnDataType_t compute) {
  if (descriptor == nullptr || pad == nullptr || stride == nullptr || dilation == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  if (n < 2 || n > 3) return CUDNN_STATUS_NOT_SUPPORTED;
  Windows& made = of<Windows>(descriptor);
  made.spatial = static_cast<size_t>(n);
  made.mode = mode;
  made.compute = compute;
  const bool taken = take(made.pad, pad, n, 0) && take(made.stride, stride, n, 1) &&
                     take(made.dilation, dilation, n, 1);
  return taken ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
CUSIM_DNN_ENTRY cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                            cudnnMathType_t math) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  of<Windows>(descriptor).math = math;
  return CUDNN_STATUS_SUCCESS;
}
CUSIM_DNN_ENTRY cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  if (descriptor == nullptr || groups < 1) return CUDNN_STATUS_BAD_PARAM;
  of<Windows>(descriptor).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
