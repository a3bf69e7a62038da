// SPDX-License-Identifier: Apache-2.0
// Parts of scratch memory that begin on cache lines of their own.
#pragma once

#include <cstdint>

namespace treenail::cpu {

// So many elements, rounded up to a multiple of 16: at least a cache line of floats.
constexpr int64_t aligned(int64_t elements) { return (elements + 15) / 16 * 16; }

}  // namespace treenail::cpu
