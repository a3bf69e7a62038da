// SPDX-License-Identifier: Apache-2.0
// Two kernels as one: the first hands its result over block by block, the second takes each block
// from cache, and no memory holds the whole. An optimiser's update behind the product that computes
// its gradient. Which nodes of a plan: plan_builder.
#pragma once

#include <memory>

#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// `giver` hands over, `taker` takes over and has no outputs. Inputs of the result: the taker's
// without the one taken over, then the giver's. Null, and both untouched, when the taker has too
// many.
std::unique_ptr<Kernel> join_by_handover(std::unique_ptr<Kernel>& giver,
                                         std::unique_ptr<Kernel>& taker, int taker_inputs);

}  // namespace treenail
