// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dnn/dnn_host.h"

#include <atomic>
#include <exception>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/base/logging.h"
#include "kernels/cuda/driver/entries.h"
#include "kernels/cuda/driver/per_device.h"

namespace treenail::cuda {
namespace {

void say_missing(const std::string& why) {
  log(LogLevel::kWarning, why, "; convolutions on GPUs are slower without it");
}

}  // namespace

#if !TN_CUDNN

bool has_dnn(CudaDevice&) {
  [[maybe_unused]] static const bool said = [] {
    say_missing("this plugin for GPUs was built without cuDNN");
    return true;
  }();
  return false;
}

#else

namespace {

struct Opened {
  Dnn table;
  std::exception_ptr error;
};

void fill(Dnn& table) {
#define TN_ENTRY(name) TN_CUDA_ROW(name)
  const Entry entries[] = {
#include "kernels/cuda/driver/dnn_entries.inc"
  };
#undef TN_ENTRY
  const std::string major = std::to_string(CUDNN_MAJOR);
  load_entries("cuDNN, for convolutions on a GPU,", concat("libcudnn.so.", major).c_str(),
               concat("cuDNN ", major), entries);
}

Opened* open() {
  auto* const opened = new Opened;
  try {
    fill(opened->table);
  } catch (const Error& error) {
    opened->error = std::current_exception();
    say_missing(error.message());
  }
  return opened;
}

const Opened& opened() {
  static std::atomic<Opened*> there{nullptr};
  return made_once(there, open);
}

bool lacked_memory(cudnnStatus_t status) {
#if CUDNN_MAJOR >= 9
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) return true;
#endif
  return status == CUDNN_STATUS_ALLOC_FAILED;
}

bool failed_on_device(cudnnStatus_t status) {
#if CUDNN_MAJOR >= 9
  constexpr int kKinds = 1000;  // what went wrong is numbered by thousands
  if (status / kKinds == CUDNN_STATUS_EXECUTION_FAILED / kKinds) return true;
#endif
  return status == CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

const Dnn& dnn() {
  if (opened().error != nullptr) std::rethrow_exception(opened().error);
  return opened().table;
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const char* const text = dnn().cudnnGetErrorString(status);
  if (lacked_memory(status)) throw resource_exhausted(call, "(): ", text);
  if (failed_on_device(status)) throw error_of(Code::kUnavailable, {call, "(): ", text});
  throw internal_error(call, "(): ", text);
}

DnnHandle::Kept* DnnHandle::make(CUstream stream) {
  auto kept = std::make_unique<Kept>();
  const cudnnStatus_t status = dnn().cudnnCreate(&kept->handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    check(dnn().cudnnSetStream(kept->handle, stream), "cudnnSetStream");
  } else if (lacked_memory(status)) {
    check(status, "cudnnCreate");
  } else {  // as where one of its other libraries is missing
    kept->handle = nullptr;
    say_missing(
        concat("cuDNN cannot be used: cudnnCreate() says ", dnn().cudnnGetErrorString(status)));
  }
  return kept.release();
}

DnnHandle::Kept& DnnHandle::kept_of(CudaDevice& device) {
  static PerDevice<Kept> all;
  return all.of(device, [&device] { return make(device.enter()); });
}

DnnHandle::DnnHandle(CudaDevice& device) : kept_(kept_of(device)), lock_(kept_.mutex) {}

bool has_dnn(CudaDevice& device) {
  return opened().error == nullptr && DnnHandle::kept_of(device).handle != nullptr;
}

cudnnDataType_t dnn_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

#endif

}  // namespace treenail::cuda
