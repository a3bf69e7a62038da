// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver: its functions, and what their results mean.
#pragma once

#include <cuda.h>

#include <string>

namespace treenail::cuda {

struct Driver {
#define TN_ENTRY(name) decltype(&::name) name = nullptr;
#include "kernels/cuda/driver/driver_entries.inc"
#undef TN_ENTRY
};

// Opened and initialised by the first call. Errors: FailedPrecondition: no driver, one too old, no
// device that may be used; the same each time.
const Driver& driver();

// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
std::string result_text(CUresult result);
// After such a result nothing on the device can be relied on, and it does nothing any more.
bool is_loss(CUresult result);
// Errors: ResourceExhausted where memory was lacking, Unavailable for a loss, else Internal: what
// we asked for should not have been refused. `call`: of the text.
void check(CUresult result, const char* call);

}  // namespace treenail::cuda
