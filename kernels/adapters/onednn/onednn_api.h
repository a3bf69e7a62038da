// SPDX-License-Identifier: Apache-2.0
// What the oneDNN adapter offers its user (kernels/cpu/convolution/conv_onednn.cc): convolutions of
// float32 images with channels last, each on the calling thread alone. A prepared convolution is
// immutable and may run on several threads at once.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

enum OneDnnPass : int32_t { kOneDnnForward = 0, kOneDnnInput = 1, kOneDnnFilter = 2 };

// Pairs are height, width. dilation counts from 1.
struct OneDnnConvolution {
  int32_t pass;
  int64_t batch, channels, filters;
  int64_t input[2], output[2], taps[2];
  int64_t stride[2], dilation[2], pad_before[2], pad_after[2];
};

// Bytes the caller provides, aligned to 64: for the filter in oneDNN's own layout, and for one run.
struct OneDnnSizes {
  uint64_t filter, workspace;
};

struct OneDnnApi {
  AdapterHeader header;
  const char* (*version)(void);
  // 1 when calls stay on the calling thread: not so with runtimes other than OpenMP and sequential.
  int32_t (*usable)(void);
  // Null when oneDNN has no such convolution; then `why` (of `size` bytes) says so.
  void* (*create)(const OneDnnConvolution* convolution, OneDnnSizes* sizes, char* why,
                  uint64_t size);
  void (*destroy)(void* prepared);
  // The filter, [taps, channels, filters], to its own layout and back. 0 on success.
  int32_t (*pack)(const void* prepared, const float* filter, void* packed, char* why,
                  uint64_t size);
  int32_t (*unpack)(const void* prepared, const void* packed, float* filter, char* why,
                    uint64_t size);
  // Images, gradients of images, and the packed filter; which of them is written follows from the
  // pass. 0 on success.
  int32_t (*run)(const void* prepared, const float* images, const float* results,
                 const void* filter, void* workspace, char* why, uint64_t size);
};

}  // namespace treenail
