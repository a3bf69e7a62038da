// SPDX-License-Identifier: Apache-2.0
// A convolution as it is asked for, checked and then computed when its stream gets there.
#pragma once

#include "tests/cuda_sim/dnn/descriptors.h"

namespace treenail::cuda_sim {

enum class Computed { kOutput, kInput, kFilter };

struct Convolution {
  Computed what = Computed::kOutput;
  Tensor x, w, y;
  Windows windows;
  cudnnTensorFormat_t filter_format = CUDNN_TENSOR_NCHW;
  double alpha = 1, beta = 0;
  bool other_order = false;  // of additions than the call before it
  // Operands and what is computed, as x, w and y are; addresses, then views.
  const void *at_x = nullptr, *at_w = nullptr, *at_y = nullptr;
};

// CUDNN_STATUS_SUCCESS, or what the vendor answers.
cudnnStatus_t check(const Convolution& convolution);

size_t type_size(cudnnDataType_t type);
size_t bytes_of(const Tensor& tensor);

// On memory that the host can read.
void compute(const Convolution& convolution);

}  // namespace treenail::cuda_sim
