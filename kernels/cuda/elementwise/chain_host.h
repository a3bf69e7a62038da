// SPDX-License-Identifier: Apache-2.0
// Element-wise ops that follow each other as one launch: their values in between are in registers
// and shared memory. Bits are those of one launch each.
#pragma once

#include <memory>

#include "framework/runtime/kernel/kernel_fusion.h"
#include "kernels/cuda/elementwise/chain_program_host.h"

namespace treenail::cuda {

std::unique_ptr<Kernel> prepare_chain(const ElementwiseGroup& group);

inline constexpr Fuser kChainFuser = {is_chain_op, prepare_chain, nullptr, nullptr};

}  // namespace treenail::cuda
