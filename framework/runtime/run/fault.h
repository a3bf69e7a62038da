// SPDX-License-Identifier: Apache-2.0
// Which node of a fused group has failed: its kernel cannot tell.
#pragma once

#include "framework/base/error.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

// `error`: what the kernel of `p`, which has just run on the frame, has thrown. The nodes are
// computed again one by one, which gives the same bits, up to one that fails in these words; where
// none before it does, and of what is no group, it is the node that stands for all.
const Node& node_at_fault(const Plan& plan, const PlanNode& p, const Frame& frame,
                          const Error& error);

}  // namespace treenail
