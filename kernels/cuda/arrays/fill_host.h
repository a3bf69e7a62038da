// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// Queued: all elements of y become `value`, which is one element on the device.
void fill(CudaDevice& device, const void* value, Tensor& y);

}  // namespace treenail::cuda
