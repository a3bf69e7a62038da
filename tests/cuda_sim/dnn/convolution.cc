// SPDX-License-Identifier: Apache-2.0
// Algorithms and their calls. As the vendor's does, the list of a gradient begins with one that
// adds in an order that differs from call to call; the next one is repeatable and wants memory.
#include "tests/cuda_sim/dnn/convolution.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

constexpr uintptr_t kAlignment = 16;
constexpr size_t kWorkspace = 4096;
constexpr int kRubbish = 0xa5;
constexpr const char* kWho = "cudnnConvolution";

// The numbers of both passes' enumerations are the same for these: 0 is not repeatable in
// gradients.
constexpr int kPlain = 0, kWithMemory = 1, kOther = 4;

Convolution asked(Computed what, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                  cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t windows) {
  Convolution c;
  c.what = what;
  c.x = of<Tensor>(x);
  c.w = of<Filter>(w).tensor();
  c.y = of<Tensor>(y);
  c.filter_format = of<Filter>(w).format;
  c.windows = of<Windows>(windows);
  return c;
}

template <class Result>
Result result_of(int number, cudnnStatus_t status, size_t memory, bool repeatable,
                 const Windows& windows) {
  Result made = {};
  made.algo = static_cast<decltype(made.algo)>(number);
  made.status = status;
  made.time = -1;
  made.memory = memory;
  made.determinism = repeatable ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  made.mathType = windows.math;
  return made;
}

template <class Result>
cudnnStatus_t list(const Convolution& c, int most, int* count, Result* results) {
  if (most < 1 || count == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = check(c);
  if (status == CUDNN_STATUS_BAD_PARAM) return status;
  const bool forward = c.what == Computed::kOutput;
  const std::array<Result, 3> all = {
      result_of<Result>(kPlain, status, 0, forward, c.windows),
      result_of<Result>(kWithMemory, status, kWorkspace, true, c.windows),
      result_of<Result>(kOther, CUDNN_STATUS_NOT_SUPPORTED, 0, true, c.windows)};
  *count = std::min(most, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *count, results);
  return CUDNN_STATUS_SUCCESS;
}

// One, while it is queued.
class Queued {
 public:
  Queued(const Convolution& convolution, void* stream, void* workspace, size_t bytes)
      : convolution_(convolution), stream_(stream), workspace_(workspace), bytes_(bytes) {}

  static void run(void* context, int lost) {
    const std::unique_ptr<Queued> self(static_cast<Queued*>(context));
    if (lost == 0 && self->use_workspace() && self->find_memory()) compute(self->convolution_);
  }

 private:
  // Before the operands are read: a workspace that is part of one spoils the result.
  bool use_workspace() {
    if (bytes_ == 0) return true;
    void* const at = driver_link()->view(stream_, kWho, workspace_, bytes_, 1);
    if (at != nullptr) std::memset(at, kRubbish, bytes_);
    return at != nullptr;
  }
  bool find_memory() {
    Convolution& c = convolution_;
    return view(c.at_x, c.x, Computed::kInput) && view(c.at_w, c.w, Computed::kFilter) &&
           view(c.at_y, c.y, Computed::kOutput);
  }
  bool view(const void*& at, const Tensor& tensor, Computed which) {
    at = driver_link()->view(stream_, kWho, at, bytes_of(tensor),
                             which == convolution_.what ? 1 : 0);
    return at != nullptr;
  }

  Convolution convolution_;
  void *const stream_, *const workspace_;
  const size_t bytes_;
};

double scalar(const Convolution& c, const void* at) {
  return c.x.type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(at)
                                       : static_cast<double>(*static_cast<const float*>(at));
}

bool aligned(const void* at) {
  return at != nullptr && reinterpret_cast<uintptr_t>(at) % kAlignment == 0;
}

cudnnStatus_t enqueue(cudnnHandle_t handle, Convolution& c, const void* alpha, const void* beta,
                      int number, void* workspace, size_t bytes) {
  if (alpha == nullptr || beta == nullptr || !aligned(c.at_x) || !aligned(c.at_w) ||
      !aligned(c.at_y))
    return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus_t status = check(c); status != CUDNN_STATUS_SUCCESS) return status;
  if (number != kPlain && number != kWithMemory) return CUDNN_STATUS_NOT_SUPPORTED;
  if (number == kWithMemory && (bytes < kWorkspace || !aligned(workspace)))
    return CUDNN_STATUS_BAD_PARAM;
  c.alpha = scalar(c, alpha);
  c.beta = scalar(c, beta);
  static std::atomic<int> calls{0};
  c.other_order = number == kPlain && c.what != Computed::kOutput && calls++ % 2 == 1;
  void* const stream = of<Handle>(handle).stream;
  auto queued = std::make_unique<Queued>(c, stream, workspace, bytes);
  if (driver_link()->enqueue(stream, &Queued::run, queued.get()) != 0)
    return CUDNN_STATUS_EXECUTION_FAILED;
  static_cast<void>(queued.release());
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_DNN_ENTRY cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t windows, cudnnTensorDescriptor_t y, int most, int* count,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  if (!handle || !x || !w || !windows || !y) return CUDNN_STATUS_BAD_PARAM;
  return list(asked(Computed::kOutput, x, w, y, windows), most, count, results);
}

CUSIM_DNN_ENTRY cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t windows, cudnnTensorDescriptor_t dx, int most, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  if (!handle || !dx || !w || !windows || !dy) return CUDNN_STATUS_BAD_PARAM;
  return list(asked(Computed::kInput, dx, w, dy, windows), most, count, results);
}

CUSIM_DNN_ENTRY cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t windows, cudnnFilterDescriptor_t dw, int most, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  if (!handle || !x || !dw || !windows || !dy) return CUDNN_STATUS_BAD_PARAM;
  return list(asked(Computed::kFilter, x, dw, dy, windows), most, count, results);
}

CUSIM_DNN_ENTRY cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                        cudnnTensorDescriptor_t x, const void* at_x,
                                        cudnnFilterDescriptor_t w, const void* at_w,
                                        cudnnConvolutionDescriptor_t windows,
                                        cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                        size_t bytes, const void* beta, cudnnTensorDescriptor_t y,
                                        void* at_y) {
  if (!handle || !x || !w || !windows || !y) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = asked(Computed::kOutput, x, w, y, windows);
  c.at_x = at_x;
  c.at_w = at_w;
  c.at_y = at_y;
  return enqueue(handle, c, alpha, beta, algorithm, workspace, bytes);
}

CUSIM_DNN_ENTRY cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                             cudnnFilterDescriptor_t w, const void* at_w,
                                             cudnnTensorDescriptor_t dy, const void* at_dy,
                                             cudnnConvolutionDescriptor_t windows,
                                             cudnnConvolutionBwdDataAlgo_t algorithm,
                                             void* workspace, size_t bytes, const void* beta,
                                             cudnnTensorDescriptor_t dx, void* at_dx) {
  if (!handle || !dx || !w || !windows || !dy) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = asked(Computed::kInput, dx, w, dy, windows);
  c.at_x = at_dx;
  c.at_w = at_w;
  c.at_y = at_dy;
  return enqueue(handle, c, alpha, beta, algorithm, workspace, bytes);
}

CUSIM_DNN_ENTRY cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                               cudnnTensorDescriptor_t x, const void* at_x,
                                               cudnnTensorDescriptor_t dy, const void* at_dy,
                                               cudnnConvolutionDescriptor_t windows,
                                               cudnnConvolutionBwdFilterAlgo_t algorithm,
                                               void* workspace, size_t bytes, const void* beta,
                                               cudnnFilterDescriptor_t dw, void* at_dw) {
  if (!handle || !x || !dw || !windows || !dy) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = asked(Computed::kFilter, x, dw, dy, windows);
  c.at_x = at_x;
  c.at_w = at_dw;
  c.at_y = at_dy;
  return enqueue(handle, c, alpha, beta, algorithm, workspace, bytes);
}
