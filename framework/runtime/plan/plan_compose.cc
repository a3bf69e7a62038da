// SPDX-License-Identifier: Apache-2.0
// Which kernels of a plan become one with the kernel that computes one of their inputs, so that no
// memory holds it: reductions with element-wise nodes, updates with the product that is their
// gradient. The producer then runs where the consumer does; the plan keeps its canonical order.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/interrupt.h"
#include "framework/runtime/plan/plan_builder.h"
#include "framework/runtime/plan/variable_order.h"

namespace treenail {

// Nothing that runs reads the nodes but the reader, and no order stands behind them that comes
// before it: they may run where it does.
bool PlanBuilder::only_feed(std::span<const Node* const> nodes, const Node& reader) {
  const std::unordered_set<const Node*> parts(nodes.begin(), nodes.end());
  for (const Node* node : nodes) {
    for (const Node* consumer : node->consumers()) {
      if (consumer == &reader || parts.contains(consumer)) continue;
      const NodeState& s = state(*consumer);
      const auto& ordered = consumer->control_inputs();
      const bool orders = std::find(ordered.begin(), ordered.end(), node) != ordered.end();
      const bool reads = std::ranges::any_of(
          consumer->inputs(), [node](const Output& input) { return input.node == node; });
      if (reads && !s.given && s.needed) return false;
      if (orders && s.position < state(reader).position) return false;
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
      if (topology_.access(node, i) == access)
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

void PlanBuilder::find_compositions() {
  if (!topology_.fuse_elementwise) return;
  for (const Node* node : topology_.order) {
    if (!may_consume(*node) || !prepare_early(*node)) continue;
    poll_interrupt();
    const int input = fuser_of(*node)->streamed_input(*state(*node).kernel);
    if (input >= 0) compose(*node, input);
  }
}

// Kernels are prepared early only where something may come of it.
bool PlanBuilder::may_consume(const Node& node) {
  const NodeState& s = state(node);
  const OpDef& def = node.op().def();
  const Fuser* const fuser = fuser_of(node);
  if (!s.needed || s.given || fuser == nullptr || fuser->compose == nullptr || def.view_of >= 0 ||
      def.allocates_outputs || node.type() == "_Retval" || fuser->accepts(node.op())) {
    return false;
  }
  return (node.num_outputs() == 0 && !node.inputs().empty()) ||
         std::ranges::any_of(node.inputs(), [&](const Output& input) {
           return !state(*input.node).given && fuser->accepts(input.node->op());
         });
}

void PlanBuilder::compose(const Node& consumer, int input) {
  const Output& value = consumer.input(input);
  NodeState& p = state(*value.node);
  const auto is_value = [&](const Output& other) { return other.node == value.node; };
  if (!p.needed || p.given || p.fused || value.node->num_outputs() != 1 ||
      device_of(*value.node) != device_of(consumer) ||
      std::ranges::count_if(consumer.inputs(), is_value) != 1) {
    return;
  }
  PreparedGroup alone;
  if (p.group < 0) alone = prepare_producer(*value.node);
  PreparedGroup& producer = p.group < 0 ? alone : groups_[static_cast<size_t>(p.group)];
  if (producer.kernel == nullptr) return;
  const bool moves_variable = std::ranges::any_of(
      producer.inputs, [&](const Output& other) { return reads_what_is_written(other, consumer); });
  std::unique_ptr<Kernel> composed;
  if (!moves_variable && only_feed(producer.nodes, consumer)) {
    composed =
        fuser_of(consumer)->compose(producer.kernel, static_cast<int>(producer.inputs.size()),
                                    state(consumer).kernel, consumer.op().num_inputs());
  }
  if (composed == nullptr) {
    if (alone.group.members.empty()) p.kernel = std::move(alone.kernel);
    return;
  }
  PreparedGroup both = std::move(producer);
  both.kernel = std::move(composed);
  both.nodes.push_back(&consumer);
  both.apart = true;
  for (int i = 0; i < consumer.op().num_inputs(); ++i)
    if (i != input) both.inputs.push_back(consumer.input(i));
  add_group(std::move(both));
}

// The node's kernel as a producer: of a group of one, or its own. Null where there is none.
PlanBuilder::PreparedGroup PlanBuilder::prepare_producer(const Node& node) {
  if (fuser_of(node)->accepts(node.op()) && can_prepare(node))
    return prepare_group(group_of_one(node));
  PreparedGroup own{{}, {node.inputs().begin(), node.inputs().end()}, nullptr, {&node}};
  const OpDef& def = node.op().def();
  if (!def.stateful && def.view_of < 0 && prepare_early(node))
    own.kernel = std::move(state(node).kernel);
  return own;
}

}  // namespace treenail
