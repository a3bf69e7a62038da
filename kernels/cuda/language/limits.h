// SPDX-License-Identifier: Apache-2.0
// What host and device code of kernels agree on.
#pragma once

namespace treenail::gpu {

inline constexpr int kMostThreads = 256;  // of a block

}  // namespace treenail::gpu
