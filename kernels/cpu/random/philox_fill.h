// SPDX-License-Identifier: Apache-2.0
// Many Philox blocks at once, as vector code.
#pragma once

#include <cstdint>

#include "framework/base/philox.h"

namespace treenail::cpu {

// Blocks first, first + 1, ... first + blocks - 1 of `stream`: four words each, in their order.
void fill_blocks(const Philox& stream, uint64_t first, int64_t blocks, uint32_t* words);

}  // namespace treenail::cpu
