// SPDX-License-Identifier: Apache-2.0
// Offsets in a frame's arena. Two blocks share bytes only where dependencies separate their lives:
// when nodes run in canonical order that order counts as a dependency, else only the plan's edges
// do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/runtime/plan/numbers.h"

namespace treenail {

inline constexpr int64_t kArenaAlignment = 64;

struct MemoryBlock {
  int64_t bytes = 0;
  std::vector<int32_t> users;  // plan nodes that write or read it, the writer first; never empty
  int64_t offset = 0;          // result
};

// `before`: for each plan node the nodes it waits for (direct edges); nodes are numbered in
// canonical order. With in_order the edges are not looked at. Returns the arena's size. Errors:
// ResourceExhausted when the blocks together have more than 2^63 - 1 bytes.
int64_t plan_memory(std::vector<MemoryBlock>& blocks, std::span<const Numbers> before,
                    bool in_order);

// Sizes added. Errors: ResourceExhausted.
int64_t added_bytes(int64_t a, int64_t b);

}  // namespace treenail
