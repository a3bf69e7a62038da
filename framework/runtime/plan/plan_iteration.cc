// SPDX-License-Identifier: Apache-2.0
// Plans of a loop's body whose iterations overlap: a result is handed on as soon as it is there and
// nobody in the iteration reads it any more; and so is each state that the body uses, by the last
// of its nodes that do, so that accesses follow the order of iterations.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "framework/runtime/plan/plan_builder.h"
#include "framework/runtime/plan/variable_order.h"

namespace treenail {
namespace {

// What a state is known by: a resource; a node, of a random operation's counter and of what a call
// has inside; null for the world outside, and where handles are not known for all resources.
using State = const void*;

struct Uses {
  Numbers nodes;
  bool read_only = true;
};

}  // namespace

void PlanBuilder::note_iteration() {
  for (size_t i = 0; i < plan_->fetch_slots.size(); ++i) wait_for_readers(static_cast<int32_t>(i));
  find_states();
  note_ends();
}

// But of an argument that is handed on as it is: all iterations share it.
void PlanBuilder::wait_for_readers(int32_t fetch) {
  const int32_t value = plan_->fetch_slots[static_cast<size_t>(fetch)];
  Numbers& waits = plan_->fetch_waits[static_cast<size_t>(fetch)];
  if (slot(value).kind != Slot::Kind::kConstant && slot(value).kind != Slot::Kind::kArg) {
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      const auto reads = [&](int32_t input) { return root_of(input) == root_of(value); };
      if (std::ranges::any_of(plan_->nodes[n].inputs, reads))
        waits.push_back(static_cast<int32_t>(n));
    }
  }
  sort_once(waits);
}

void PlanBuilder::find_states() {
  std::map<State, Uses> states;
  bool all_known = true;
  const auto use = [&](State state, int32_t n, bool reads) {
    Uses& uses = states[state];
    uses.nodes.push_back(n);
    uses.read_only &= reads;
  };
  for (const Node* node : topology_.order) {
    const int32_t n = state(*node).plan_node;
    const OpDef& def = node->op().def();
    if (n < 0) continue;
    bool on_resource = false;
    for (int i = 0; i < node->op().num_inputs(); ++i) {
      const Access access = topology_.access(*node, i);
      if (access == Access::kNone) continue;
      const Resource* resource = resource_behind(node->input(i), topology_.handles);
      all_known &= resource != nullptr;
      on_resource = true;
      use(resource, n, access == Access::kRead);
    }
    const bool calls = plan_->nodes[static_cast<size_t>(n)].calls;
    if (def.random || (def.stateful && calls)) use(node, n, false);
    if (def.stateful && !def.random && (!on_resource || calls)) use(nullptr, n, false);
  }
  if (!all_known) {  // any may be any other
    Uses one{{}, false};
    for (const auto& [state, uses] : states)
      for (const int32_t n : uses.nodes) one.nodes.push_back(n);
    states.clear();
    states.emplace(nullptr, std::move(one));
  }
  for (auto& [state, uses] : states) {
    if (uses.read_only) continue;
    sort_once(uses.nodes);
    const auto feed = static_cast<int32_t>(plan_->arg_successors.size());
    plan_->arg_successors.emplace_back();
    plan_->fetch_waits.push_back(uses.nodes);
    ++plan_->num_states;
    for (const int32_t n : uses.nodes) {
      before_[static_cast<size_t>(n)].push_back(~feed);
      sort_once(before_[static_cast<size_t>(n)]);
    }
  }
}

void PlanBuilder::note_ends() {
  plan_->node_ends.resize(plan_->nodes.size());
  plan_->arg_ends.resize(plan_->arg_successors.size());
  for (size_t i = 0; i < plan_->fetch_waits.size(); ++i) {
    for (const int32_t wait : plan_->fetch_waits[i]) {
      Numbers& ends = wait < 0 ? plan_->arg_ends[static_cast<size_t>(-1 - wait)]
                               : plan_->node_ends[static_cast<size_t>(wait)];
      ends.push_back(static_cast<int32_t>(i));
    }
  }
}

}  // namespace treenail
