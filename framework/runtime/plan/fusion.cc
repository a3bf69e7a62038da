// SPDX-License-Identifier: Apache-2.0
// Consumers are visited before producers. A node joins the group of its consumers when all of them
// are in one group; it then runs where the group's last member does. That is no later than before
// for anything but its own readers: its value goes nowhere else, and nodes ordered behind it by
// control edges must stand behind the whole group already. So no cycle can arise.
#include "framework/runtime/plan/fusion.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/base/small_vector.h"

namespace treenail {
namespace {

bool same(const Output& a, const Output& b) { return a.node == b.node && a.index == b.index; }

class Finder {
 public:
  Finder(std::span<Node* const> order, std::span<const FusionCandidate> candidates)
      : order_(order), candidates_(candidates), nodes_(candidates.size()) {
    for (size_t i = 0; i < order.size(); ++i) state(*order[i]).position = static_cast<int32_t>(i);
    for (const Node* node : order) {
      for (const Node* before : node->control_inputs()) {
        int32_t& first = state(*before).first_ordered;
        first = std::min(first, state(*node).position);
      }
    }
  }

  std::vector<FusionGroup> find() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) place(**it);
    std::vector<FusionGroup> found;
    for (auto it = groups_.rbegin(); it != groups_.rend(); ++it) {
      if (it->size() < 2) continue;
      const Edges inputs = inputs_of(*it);
      FusionGroup& group = found.emplace_back();
      group.members.assign(it->begin(), it->end());
      std::ranges::reverse(group.members);
      group.inputs.assign(inputs.begin(), inputs.end());
    }
    return found;
  }

  int64_t looked_at() const { return looked_at_; }

 private:
  using Members = SmallVector<const Node*, 4>;  // by falling position, as they are found
  using Edges = SmallVector<Output, 8>;
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kUnread = -2;  // no consumer yet
  struct NodeState {
    int32_t position = 0;
    // Position of the first node behind it by a control edge.
    int32_t first_ordered = std::numeric_limits<int32_t>::max();
    int32_t group = kNone;
    int32_t group_of_consumers = kUnread;  // that all of them are in, or kNone
  };

  NodeState& state(const Node& node) { return nodes_[static_cast<size_t>(node.id())]; }
  const FusionCandidate& candidate(const Node& node) const {
    return candidates_[static_cast<size_t>(node.id())];
  }

  // Its consumers have been placed.
  void place(const Node& node) {
    const FusionCandidate& c = candidate(node);
    if (!c.runs) return;
    NodeState& s = state(node);
    if (c.fuser != nullptr && c.shape != nullptr && node.num_outputs() == 1 &&
        c.fuser->accepts(node.op())) {
      s.group = find_place(node, s);
    }
    for (const Output& input : node.inputs()) {
      ++looked_at_;
      int32_t& common = state(*input.node).group_of_consumers;
      if (common == kUnread) {
        common = s.group;
      } else if (common != s.group) {
        common = kNone;
      }
    }
  }

  // The group that the node joins or begins; kNone where it is too much for one alone.
  int32_t find_place(const Node& node, const NodeState& s) {
    if (may_join(node, s)) {
      Members& members = groups_[static_cast<size_t>(s.group_of_consumers)];
      members.push_back(&node);
      if (fits(members)) return s.group_of_consumers;
      members.resize(members.size() - 1);
    }
    Members alone;
    alone.push_back(&node);
    if (!fits(alone)) return kNone;
    groups_.push_back(alone);
    return static_cast<int32_t>(groups_.size()) - 1;
  }

  bool may_join(const Node& node, const NodeState& s) {
    if (s.group_of_consumers < 0) return false;
    const Node& last = *groups_[static_cast<size_t>(s.group_of_consumers)][0];
    return candidate(node).device == candidate(last).device &&
           *candidate(node).shape == *candidate(last).shape &&
           s.first_ordered > state(last).position;
  }

  // Holds for every group, from its first member on. Operands are counted before anything else is
  // done with them, so that one trial costs no more than a group's worth.
  bool fits(const Members& members) {
    size_t operands = 0;
    for (const Node* member : members) operands += member->inputs().size();
    return operands <= kMostFusedOperands &&
           fits_one_kernel(members.size(), operands, inputs_of(members).size());
  }

  // In order of first use by members in canonical order.
  Edges inputs_of(const Members& members) {
    Edges inputs;
    for (size_t i = members.size(); i-- > 0;) {
      for (const Output& input : members[i]->inputs()) {
        ++looked_at_;
        if (std::ranges::find(members, input.node) != members.end()) continue;
        if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
      }
    }
    return inputs;
  }

  std::span<Node* const> order_;
  std::span<const FusionCandidate> candidates_;
  std::vector<NodeState> nodes_;  // by node id
  std::vector<Members> groups_;
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
                                const Shape& output_shape, Device& device) {
  ElementwiseGroup out;
  out.device = &device;
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
  out.steps.reserve(group.members.size());
  for (const Node* member : group.members) {
    ElementwiseGroup::Step step{&member->op(), {}};
    for (const Output& input : member->inputs()) step.operands.push_back(number(input));
    out.steps.push_back(std::move(step));
  }
  return out;
}

}  // namespace treenail
