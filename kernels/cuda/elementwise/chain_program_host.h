// SPDX-License-Identifier: Apache-2.0
// From a group of element-wise ops to a chain (chain.h).
#pragma once

#include <optional>
#include <vector>

#include "framework/runtime/kernel/kernel_fusion.h"
#include "kernels/cuda/elementwise/chain.h"

namespace treenail::cuda {

struct ChainProgram {
  gpu::Chain chain;         // but for addresses, and what hangs on them
  std::vector<int> inputs;  // of the group, by number in the chain
  int slots = 0;
};

// Can the op be steps of a chain?
bool is_chain_op(const OpInstance& op);
// Nothing where the group is beyond a limit of chain.h. The result has elements.
std::optional<ChainProgram> chain_program(const ElementwiseGroup& group);

}  // namespace treenail::cuda
