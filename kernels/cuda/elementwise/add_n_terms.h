// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treenail::gpu {

inline constexpr int kMostTerms = 8;  // of one launch of elementwise/add_n.cu

}  // namespace treenail::gpu
