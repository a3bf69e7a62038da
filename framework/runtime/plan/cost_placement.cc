// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/cost_placement.h"

#include <mutex>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail {

bool HasKernelOn::operator()(const OpInstance& op, const std::string& kind) const {
  return op.def().any_device || KernelRegistry::instance().serves(op, kind);
}

int32_t CostPlacements::home(const Node& node) {
  if (!has_state(node.op())) return kNoHome;
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(homes_);
  const auto found = homes_.find(node.original_name());
  return found == homes_.end() ? kNoHome : found->second;
}

void CostPlacements::remember(const Graph& graph, std::span<const int32_t> places) {
  if (mutex_.abandoned()) begin_anew(homes_);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node != nullptr && has_state(node->op()))
      homes_.try_emplace(node->original_name(), places[static_cast<size_t>(id)]);
  }
}

void CostPlacements::settle(const Graph& graph) {
  {
    const std::lock_guard lock(mutex_);
    if (mutex_.abandoned()) begin_anew(homes_);
    if (settled_nodes_ == graph.num_nodes()) return;
    settled_nodes_ = graph.num_nodes();
    bool any = false;
    for (int id = 0; id < graph.num_nodes() && !any; ++id) {
      const Node* const node = graph.node(id);
      any = node != nullptr && has_state(node->op()) && !homes_.contains(node->original_name());
    }
    if (!any) return;
  }
  const auto home_of = [&](const Node& node) { return home(node); };
  const auto find = [&](std::string_view name) -> const Function* {
    const auto found = graph.functions().find(name);
    return found == graph.functions().end() || found->second->body == nullptr ? nullptr
                                                                              : found->second.get();
  };
  try {
    const std::vector<int32_t> found =
        place_by_cost(graph, devices_, soft_, has_kernel_on, home_of, find, model_).places;
    const std::lock_guard lock(mutex_);
    remember(graph, found);
  } catch (const Error&) {
    // Something that no run may ever ask for cannot be placed, or all at once does not fit: then
    // each run places its own state.
  }
}

std::vector<int32_t> CostPlacements::places(const Graph& graph, HomeOf home_of, FindFunction find) {
  const auto at_home = [&](const Node& node) {
    const int32_t given = home_of(node);
    return given == kNoHome ? home(node) : given;
  };
  std::vector<int32_t> found =
      place_by_cost(graph, devices_, soft_, has_kernel_on, at_home, find, model_).places;
  const std::lock_guard lock(mutex_);
  remember(graph, found);
  return found;
}

}  // namespace treenail
