// SPDX-License-Identifier: Apache-2.0
// How exact NVIDIA's libraries compute in float32.
#pragma once

namespace treenail::cuda {

// May factors be cut to TensorFloat-32, of ten bits of fraction, so that tensor cores take them?
// TREENAIL_GPU_TF32=1 says so. Errors: InvalidArgument for other values than 0 and 1.
bool takes_tf32();

}  // namespace treenail::cuda
