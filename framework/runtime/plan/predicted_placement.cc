// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/predicted_placement.h"

#include <map>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/placement/cluster_placer.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/plan/cost_placement.h"
#include "framework/runtime/plan/function_facts.h"

namespace treenail {
namespace {

// Of kinds that this process knows what is registered; others are imagined to have everything.
class Kernels {
 public:
  bool operator()(const OpInstance& op, const std::string& kind) {
    const auto [known, fresh] = known_.try_emplace(kind, false);
    if (fresh) known->second = !KernelRegistry::instance().registered(kind).empty();
    return !known->second || has_kernel_on(op, kind);
  }

 private:
  std::map<std::string, bool, std::less<>> known_;
};

}  // namespace

PredictedPlacement predict_placement(const Graph& graph, std::span<const Output> feeds,
                                     std::span<const Output> fetches,
                                     std::span<Node* const> targets,
                                     std::span<const DeviceName> devices, bool allow_soft_placement,
                                     const CostModel& model) {
  const std::vector<PlacementDevice> described = placement_devices(devices);
  if (described.empty() || !described[0].is_host())
    throw invalid_argument("the devices of a placement begin with a CPU, on which what is fed and ",
                           "fetched lies; got ",
                           described.empty() ? "none" : to_text(described[0].name));
  const FunctionFacts facts(graph.functions(), false);
  TopologyOptions options;
  options.facts = &facts;
  const std::shared_ptr<Topology> copy = copy_for_topology(graph, feeds, fetches, targets, options);
  Kernels kernels;
  const auto at_home = [](const Node&) { return kNoHome; };
  const auto find = [&](std::string_view name) { return facts.find(name); };
  if (model.told != nullptr) {  // workers fold constants of their pieces, a master does not
    CostPlacement placement =
        place_in_cluster(*copy->graph, described, allow_soft_placement, kernels, find, model);
    return {copy, std::move(placement)};
  }
  fold_and_prune(
      *copy, [](const Node&) { return true; }, options);
  CostPlacement placement =
      place_by_cost(*copy->graph, described, allow_soft_placement, kernels, at_home, find, model);
  return {copy, std::move(placement)};
}

}  // namespace treenail
