// SPDX-License-Identifier: Apache-2.0
// How a plan is run: node after node with every kernel split over all threads, or independent nodes
// side by side with each kernel whole on its thread. Results are the same bits either way; only
// time differs.
#pragma once

#include <span>

namespace treenail {

struct PlanNode;

// By simulation with the kernels' cost estimates on `threads` threads.
bool faster_side_by_side(std::span<const PlanNode> nodes, int threads);

}  // namespace treenail
