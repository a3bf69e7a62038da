// SPDX-License-Identifier: Apache-2.0
// Placement by cost over the tasks of a cluster, whose state outlives the session. Whether a
// variable is found again must depend neither on a profile nor on what else the graph has: what has
// state, or reaches beyond its inputs, is where it would be without placement by cost, and only the
// rest moves.
#pragma once

#include <span>

#include "framework/placement/cost_placer.h"

namespace treenail {

// Errors: as place_by_cost().
CostPlacement place_in_cluster(const Graph& graph, std::span<const PlacementDevice> devices,
                               bool allow_soft_placement, HasKernel has_kernel,
                               FindFunction find_function, const CostModel& model);

}  // namespace treenail
