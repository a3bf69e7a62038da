// SPDX-License-Identifier: Apache-2.0
// Which updates of a plan take their gradient from the kernel that computes it, block by block. The
// giver then runs where the update does; the plan keeps its canonical order.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/runtime/plan/handover.h"
#include "framework/runtime/plan/plan_builder.h"
#include "framework/runtime/plan/variable_order.h"

namespace treenail {

// Nothing that runs, and no order, stands behind the nodes but the reader: they may run where it
// does.
bool PlanBuilder::only_feed(std::span<const Node* const> nodes, const Node& reader) {
  const std::unordered_set<const Node*> parts(nodes.begin(), nodes.end());
  for (const Node* node : nodes) {
    for (const Node* consumer : node->consumers()) {
      if (consumer == &reader || parts.contains(consumer)) continue;
      const NodeState& s = state(*consumer);
      const auto& ordered = consumer->control_inputs();
      if (!s.given && s.needed) return false;
      if (std::find(ordered.begin(), ordered.end(), node) != ordered.end()) return false;
    }
  }
  return true;
}

// Is the value a share of a variable that `writer` writes? While it is there, the variable moves.
bool PlanBuilder::reads_what_is_written(const Output& value, const Node& writer) {
  const Node* source = value.node;
  while (source->op().def().view_of >= 0) source = source->input(source->op().def().view_of).node;
  const auto behind = [&](const Node& node, Access access) {
    std::vector<const Resource*> found;  // null: one that is not known yet
    for (int i = 0; i < node.op().num_inputs(); ++i) {
      if (node.op().input_def(i).access == access)
        found.push_back(resource_behind(node.input(i), topology_.handles));
    }
    return found;
  };
  const std::vector<const Resource*> read = behind(*source, Access::kRead),
                                     written = behind(writer, Access::kWrite);
  return std::any_of(read.begin(), read.end(), [&](const Resource* r) {
    return std::any_of(written.begin(), written.end(),
                       [&](const Resource* w) { return r == w || r == nullptr || w == nullptr; });
  });
}

// Updates that take their gradient from the kernel that computes it, block by block.
void PlanBuilder::find_handovers() {
  if (!topology_.fuse_elementwise) return;
  for (const Node* taker : topology_.order) {
    NodeState& s = state(*taker);
    if (!s.needed || s.given || taker->num_outputs() != 0 || !prepare_early(*taker)) continue;
    if (s.kernel->takes_over >= 0) take_over(*taker, s);
  }
}

void PlanBuilder::take_over(const Node& taker, NodeState& s) {
  const int taken = s.kernel->takes_over;
  const Node* const giver = taker.input(taken).node;
  NodeState& g = state(*giver);
  const OpDef& def = giver->op().def();
  if (!g.needed || g.given || g.fused || giver->num_outputs() != 1 || def.stateful) return;
  if (g.group < 0 && (def.view_of >= 0 || !prepare_early(*giver))) return;
  PreparedGroup alone{{}, {giver->inputs().begin(), giver->inputs().end()}, nullptr, {giver}};
  PreparedGroup& giving = g.group < 0 ? alone : groups_[static_cast<size_t>(g.group)];
  std::unique_ptr<Kernel>& kernel = g.group < 0 ? g.kernel : giving.kernel;
  const bool moves_variable =
      std::any_of(giving.inputs.begin(), giving.inputs.end(),
                  [&](const Output& input) { return reads_what_is_written(input, taker); });
  if (!kernel->hands_over || moves_variable || !only_feed(giving.nodes, taker)) return;
  std::unique_ptr<Kernel> joined =
      join_by_handover(kernel, s.kernel, static_cast<int>(taker.inputs().size()));
  if (joined == nullptr) return;
  std::vector<Output> inputs(taker.inputs().begin(), taker.inputs().end());
  inputs.erase(inputs.begin() + taken);
  inputs.insert(inputs.end(), giving.inputs.begin(), giving.inputs.end());
  giving.inputs = std::move(inputs);
  giving.kernel = std::move(joined);
  giving.nodes.push_back(&taker);
  g.fused = true;
  if (g.group < 0) {
    g.group = static_cast<int32_t>(groups_.size());
    groups_.push_back(std::move(giving));
  }
  s.group = std::exchange(g.group, -1);
}

}  // namespace treenail
