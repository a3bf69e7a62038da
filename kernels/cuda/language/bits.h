// SPDX-License-Identifier: Apache-2.0
// Elements that are moved by their size alone.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct alignas(16) Bits128 {
  uint64_t low, high;
};

}  // namespace treenail::gpu
