// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/fault.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "framework/runtime/run/immediate.h"

namespace treenail {
namespace {

// What the nodes of a group have been given and have made.
class Again {
 public:
  Again(const Plan& plan, const PlanNode& p, const FusedGroup& group, const Frame& frame)
      : plan_(plan), frame_(frame) {
    for (size_t i = 0; i < group.inputs.size(); ++i)
      values_.emplace_back(group.inputs[i], frame.values[static_cast<size_t>(p.inputs[i])]);
  }

  // False where that cannot be done, or would do something. Errors: the node's.
  bool run(const Node& node) {
    std::vector<Tensor> inputs;
    for (const Output& input : node.inputs()) {
      const Tensor* const value = find(input);
      if (value == nullptr || !value->defined()) return false;
      inputs.push_back(*value);
    }
    if (node.op().def().stateful) return false;
    NodeServices services;
    services.resources = plan_.resources;
    const std::vector<Tensor> outputs =
        run_immediately(node.op(), inputs, services, &frame_.scope->token);
    for (size_t i = 0; i < outputs.size(); ++i)
      values_.emplace_back(Output{const_cast<Node*>(&node), static_cast<int>(i)}, outputs[i]);
    return true;
  }

 private:
  const Tensor* find(const Output& output) const {
    const auto at = std::ranges::find(values_, output, &std::pair<Output, Tensor>::first);
    return at == values_.end() ? nullptr : &at->second;
  }

  const Plan& plan_;
  const Frame& frame_;
  std::vector<std::pair<Output, Tensor>> values_;
};

// Null where it is not one of those before the last.
const Node* find_fault(const Plan& plan, const PlanNode& p, const FusedGroup& group,
                       const Frame& frame, const Error& error) {
  Again again(plan, p, group, frame);
  for (const Node* node : group.nodes) {
    if (node == p.node) return nullptr;
    try {
      if (!again.run(*node)) return nullptr;
    } catch (const Error& own) {
      // Another one's: the kernel may have written over its inputs before it failed.
      return own.code() == error.code() && own.message() == error.message() ? node : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

const Node& node_at_fault(const Plan& plan, const PlanNode& p, const Frame& frame,
                          const Error& error) {
  const auto position = static_cast<int32_t>(&p - plan.nodes.data());
  const auto group = std::ranges::lower_bound(plan.groups, position, {}, &FusedGroup::position);
  const bool known = group != plan.groups.end() && group->position == position &&
                     plan.memories[static_cast<size_t>(p.memory)].device->is_host();
  if (!known) return *p.node;
  try {
    const Node* const found = find_fault(plan, p, *group, frame, error);
    return found != nullptr ? *found : *p.node;
  } catch (const std::bad_alloc&) {
    return *p.node;
  }
}

}  // namespace treenail
