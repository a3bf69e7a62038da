// SPDX-License-Identifier: Apache-2.0
// What a kernel of division.cu writes where an element has no result; the host clears it before.
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int32_t kDivisionByZero = 1;
inline constexpr int32_t kNegativePower = 2;

}  // namespace treenail::gpu
