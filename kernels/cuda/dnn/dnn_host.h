// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cuDNN, opened when it is first of use. A toolkit may come without it: then TN_CUDNN is
// 0, and nobody calls what is declared here.
#pragma once

#if __has_include(<cudnn.h>)
#define TN_CUDNN 1
#include <cudnn.h>
#else
#define TN_CUDNN 0
#endif

#include <mutex>

#include "framework/base/fork.h"
#include "framework/tensor/dtype.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// Can cuDNN be called for the device? Where it cannot, the log says why once.
bool has_dnn(CudaDevice& device);

#if TN_CUDNN

struct Dnn {
#define TN_ENTRY(name) decltype(&::name) name = nullptr;
#include "kernels/cuda/driver/dnn_entries.inc"
#undef TN_ENTRY
};

// Errors: FailedPrecondition where it is absent, the same each time.
const Dnn& dnn();

// Errors: ResourceExhausted where memory was lacking, Unavailable where the GPU has failed, else
// Internal. `call`: of the text.
void check(cudnnStatus_t status, const char* call);

// The device's handle, which works on its stream, for one caller at a time.
class DnnHandle {
 public:
  explicit DnnHandle(CudaDevice& device);
  cudnnHandle_t get() const { return kept_.handle; }

 private:
  friend bool has_dnn(CudaDevice& device);
  struct Kept {
    cudnnHandle_t handle = nullptr;  // none where cuDNN cannot work here
    ForkMutex mutex;
  };
  static Kept& kept_of(CudaDevice& device);
  static Kept* make(CUstream stream);

  Kept& kept_;
  std::lock_guard<ForkMutex> lock_;
};

// Of floating dtypes.
cudnnDataType_t dnn_type(DType dtype);

// A descriptor of one kind.
template <class T>
class DnnDescriptor {
 public:
  DnnDescriptor(cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)) : destroy_(destroy) {
    check(create(&descriptor_), "cudnnCreateDescriptor");
  }
  ~DnnDescriptor() { destroy_(descriptor_); }
  DnnDescriptor(const DnnDescriptor&) = delete;
  DnnDescriptor& operator=(const DnnDescriptor&) = delete;
  T get() const { return descriptor_; }

 private:
  cudnnStatus_t (*destroy_)(T);
  T descriptor_ = nullptr;
};

#endif

}  // namespace treenail::cuda
