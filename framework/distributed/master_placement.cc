// SPDX-License-Identifier: Apache-2.0
// Where a master has the nodes of a run: on what they ask for, or where the session's model
// predicts that the run ends first.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/distributed/master_plan.h"
#include "framework/graph/function_calls.h"
#include "framework/placement/cluster_placer.h"
#include "framework/placement/placer.h"
#include "framework/runtime/plan/cost_placement.h"

namespace treenail {
namespace {

// While a graph is placed, what is fetched has an end that is at the master's own task, where it
// goes.
void add_ends(Graph& graph, std::span<const Output> fetches) {
  for (size_t i = 0; i < fetches.size(); ++i) {
    const NamedAttrs attrs = {{"index", static_cast<int64_t>(i)}};
    graph.add(
        {.op = "_Retval", .name = "_retval", .inputs = fetches.subspan(i, 1), .attrs = attrs});
  }
}

void remove_from(Graph& graph, int first) {
  std::vector<bool> needed(static_cast<size_t>(graph.num_nodes()), true);
  std::fill(needed.begin() + first, needed.end(), false);
  graph.remove_unless(needed);
}

std::vector<int32_t> places_by_cost(Graph& graph, std::span<const Output> fetches,
                                    std::span<const PlacementDevice> devices, bool soft,
                                    const CostModel& model) {
  const auto find = [&](std::string_view name) -> const Function* {
    const auto found = graph.functions().find(name);
    return found == graph.functions().end() || found->second->body == nullptr ? nullptr
                                                                              : found->second.get();
  };
  const int nodes = graph.num_nodes();
  add_ends(graph, fetches);
  std::vector<int32_t> places =
      place_in_cluster(graph, devices, soft, has_kernel_on, find, model).places;
  remove_from(graph, nodes);
  return places;
}

}  // namespace

std::vector<int32_t> Master::placed(const Session& session, Graph& graph,
                                    std::span<const Output> fetches) {
  const bool soft = session.settings.allow_soft_placement;
  if (session.by_cost == nullptr || session.devices.size() < 2) {
    const auto no_home = [](const Node&) { return kNoHome; };
    return place(graph, session.devices, soft, has_kernel_on, no_home);
  }
  std::vector<int32_t> places =
      places_by_cost(graph, fetches, session.devices, soft, *session.by_cost);
  std::vector<std::string> names;
  for (const PlacementDevice& device : session.devices) names.push_back(to_text(device.name));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    Node* const node = graph.node(id);
    if (node == nullptr || calls_functions(node->op()) || node->type() == "Placeholder") continue;
    graph.set_device(*node, names[static_cast<size_t>(places[static_cast<size_t>(id)])]);
  }
  return places;
}

}  // namespace treenail
