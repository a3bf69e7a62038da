// SPDX-License-Identifier: Apache-2.0
// Where the nodes of a run would be placed by what it costs, and what is predicted of it: on any
// devices, of this process, of others, or imagined.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "framework/placement/cost_placer.h"
#include "framework/runtime/plan/topology.h"

namespace treenail {

struct PredictedPlacement {
  std::shared_ptr<const Topology> topology;  // with the graph that the placement is of
  CostPlacement placement;
};

// As a session would run these, one at a server where the model has what tasks tell (CostModel::
// told), whose state then is where it is without a model (cluster_placer.h); of kinds of devices of
// which this process has no kernels it is taken that they have all. A CPU comes first. The caller
// holds graph.mutex() at least shared. Errors: as place_by_cost().
PredictedPlacement predict_placement(const Graph& graph, std::span<const Output> feeds,
                                     std::span<const Output> fetches,
                                     std::span<Node* const> targets,
                                     std::span<const DeviceName> devices, bool allow_soft_placement,
                                     const CostModel& model);

}  // namespace treenail
