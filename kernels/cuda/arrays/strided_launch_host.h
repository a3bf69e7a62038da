// SPDX-License-Identifier: Apache-2.0
// Strided copies on a GPU's queue.
#pragma once

#include "kernels/cuda/driver/kernels.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::cuda {

// Of plain elements, between arrays on the device. Errors: as CudaDevice::check().
void launch_copy(CudaDevice& device, const host::StridedCopy& copy, const void* from, void* to);

}  // namespace treenail::cuda
