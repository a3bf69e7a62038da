// SPDX-License-Identifier: Apache-2.0
// Consumers are visited before producers. A node joins the group of its consumers when all of them
// are in one group; it then runs where the group's last member does. That is no later than before
// for anything but its own readers: its value goes nowhere else, and nodes ordered behind it by
// control edges must stand behind the whole group already. So no cycle can arise.
#include "framework/runtime/plan/fusion.h"

#include <algorithm>
#include <utility>

namespace treenail {
namespace {

bool same(const Output& a, const Output& b) { return a.node == b.node && a.index == b.index; }

class Finder {
 public:
  Finder(std::span<Node* const> order, std::span<const FusionCandidate> candidates)
      : order_(order), candidates_(candidates), nodes_(candidates.size()) {
    for (size_t i = 0; i < order.size(); ++i) state(*order[i]).position = i;
    for (const Node* node : order) {
      for (const Node* before : node->control_inputs()) {
        size_t& first = state(*before).first_ordered;
        first = std::min(first, state(*node).position);
      }
      if (!candidate(*node).runs) continue;
      for (const Output& input : node->inputs()) state(*input.node).consumers.push_back(node);
    }
  }

  std::vector<FusionGroup> find() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) place(**it);
    std::vector<FusionGroup> found;
    for (auto it = groups_.rbegin(); it != groups_.rend(); ++it) {
      if (it->size() < 2) continue;
      std::reverse(it->begin(), it->end());
      found.push_back({*it, inputs_of(*it)});
    }
    return found;
  }

  int64_t looked_at() const { return looked_at_; }

 private:
  struct NodeState {
    size_t position = 0;
    size_t first_ordered = SIZE_MAX;  // position of the first node behind it by a control edge
    std::vector<const Node*> consumers;
    int group = -1;
  };

  NodeState& state(const Node& node) { return nodes_[static_cast<size_t>(node.id())]; }
  const FusionCandidate& candidate(const Node& node) const {
    return candidates_[static_cast<size_t>(node.id())];
  }

  void place(const Node& node) {
    const FusionCandidate& c = candidate(node);
    if (!c.runs || c.fuser == nullptr || c.shape == nullptr || node.num_outputs() != 1 ||
        !c.fuser->accepts(node.op()) || !fits({&node})) {
      return;
    }
    NodeState& s = state(node);
    s.group = group_of_consumers(node);
    if (s.group >= 0) {
      groups_[static_cast<size_t>(s.group)].push_back(&node);
      return;
    }
    s.group = static_cast<int>(groups_.size());
    groups_.push_back({&node});
  }

  // The group that the node may join, or -1.
  int group_of_consumers(const Node& node) {
    const NodeState& s = state(node);
    if (s.consumers.empty()) return -1;
    const int group = state(*s.consumers[0]).group;
    if (group < 0) return -1;
    for (const Node* consumer : s.consumers) {
      ++looked_at_;
      if (state(*consumer).group != group) return -1;
    }
    std::vector<const Node*> members = groups_[static_cast<size_t>(group)];
    const Node& last = *members.front();
    if (candidate(node).device != candidate(last).device) return -1;
    if (!(*candidate(node).shape == *candidate(last).shape)) return -1;
    if (s.first_ordered <= state(last).position) return -1;
    members.push_back(&node);
    return fits(members) ? group : -1;
  }

  // Holds for every group, from its first member on. Operands are counted before anything else is
  // done with them, so that one trial costs no more than a group's worth.
  bool fits(const std::vector<const Node*>& members) {
    size_t operands = 0;
    for (const Node* member : members) operands += member->inputs().size();
    return operands <= kMostFusedOperands &&
           fits_one_kernel(members.size(), operands, inputs_of(members).size());
  }

  // In order of first use by members in canonical order, whichever way `members` is sorted.
  std::vector<Output> inputs_of(std::vector<const Node*> members) {
    std::sort(members.begin(), members.end(), [&](const Node* a, const Node* b) {
      return state(*a).position < state(*b).position;
    });
    std::vector<Output> inputs;
    for (const Node* member : members) {
      for (const Output& input : member->inputs()) {
        ++looked_at_;
        if (std::find(members.begin(), members.end(), input.node) != members.end()) continue;
        const bool there = std::any_of(inputs.begin(), inputs.end(),
                                       [&](const Output& other) { return same(input, other); });
        if (!there) inputs.push_back(input);
      }
    }
    return inputs;
  }

  std::span<Node* const> order_;
  std::span<const FusionCandidate> candidates_;
  std::vector<NodeState> nodes_;                  // by node id
  std::vector<std::vector<const Node*>> groups_;  // last member first
  int64_t looked_at_ = 0;
};

}  // namespace

std::vector<FusionGroup> find_fusion_groups(std::span<Node* const> order,
                                            std::span<const FusionCandidate> candidates,
                                            int64_t* looked_at) {
  Finder finder(order, candidates);
  std::vector<FusionGroup> groups = finder.find();
  if (looked_at != nullptr) *looked_at += finder.looked_at();
  return groups;
}

FusionGroup group_of_one(const Node& node) {
  FusionGroup group{{&node}, {}};
  for (const Output& input : node.inputs()) {
    const auto is_input = [&](const Output& other) { return same(input, other); };
    if (std::ranges::none_of(group.inputs, is_input)) group.inputs.push_back(input);
  }
  return group;
}

ElementwiseGroup describe_group(const FusionGroup& group, std::vector<Shape> input_shapes,
                                const Shape& output_shape) {
  ElementwiseGroup out;
  out.input_shapes = std::move(input_shapes);
  out.output_shape = output_shape;
  for (const Output& input : group.inputs)
    out.input_types.push_back(input.node->op().output_type(input.index));
  const auto number = [&](const Output& value) {
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      if (same(group.inputs[i], value)) return static_cast<int>(i);
    }
    const auto at = std::find(group.members.begin(), group.members.end(), value.node);
    return static_cast<int>(group.inputs.size()) + static_cast<int>(at - group.members.begin());
  };
  for (const Node* member : group.members) {
    ElementwiseGroup::Step step{&member->op(), {}};
    for (const Output& input : member->inputs()) step.operands.push_back(number(input));
    out.steps.push_back(std::move(step));
  }
  return out;
}

}  // namespace treenail
