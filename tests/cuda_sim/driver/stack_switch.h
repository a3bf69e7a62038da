// SPDX-License-Identifier: Apache-2.0
// Changes from one stack to another.
#pragma once

#include <cstddef>

namespace treenail::cuda_sim {

// Where a stack that is left goes on.
struct StackPoint {
  void* at = nullptr;
};

// `entry` begins on the stack when it is first switched to, and never returns.
StackPoint first_point(char* stack, size_t bytes, void (*entry)());
void switch_stack(StackPoint& from, const StackPoint& to);

}  // namespace treenail::cuda_sim
