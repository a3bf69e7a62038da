// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/cluster_placer.h"

#include <vector>

namespace treenail {
namespace {

// Files, what the process prints and Python code are of one task as variables are.
bool stays(const Node& node) {
  return has_state(node.op()) || node.op().def().host_access != HostAccess::kNone;
}

}  // namespace

CostPlacement place_in_cluster(const Graph& graph, std::span<const PlacementDevice> devices,
                               bool allow_soft_placement, HasKernel has_kernel,
                               FindFunction find_function, const CostModel& model) {
  const auto nowhere = [](const Node&) { return kNoHome; };
  const std::vector<int32_t> plain =
      place(graph, devices, allow_soft_placement, has_kernel, nowhere);
  const auto home = [&](const Node& node) {
    return stays(node) ? plain[static_cast<size_t>(node.id())] : kNoHome;
  };
  return place_by_cost(graph, devices, allow_soft_placement, has_kernel, home, find_function,
                       model);
}

}  // namespace treenail
