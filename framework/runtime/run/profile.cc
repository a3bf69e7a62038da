// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/profile.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "framework/base/spin.h"
#include "framework/op/flops.h"
#include "framework/tensor/tensor_bytes.h"

namespace treenail {
namespace {

class Counter {
 public:
  explicit Counter(const Plan& plan) : plan_(plan) {
    int32_t next = 0;
    for (const Node* node : plan.topology->order) {
      first_slot_[node] = next;
      next += node->num_outputs();
    }
    for (const FusedGroup& group : plan.groups) groups_[group.position] = &group;
  }

  NodeStats stats(size_t position) const {
    const PlanNode& p = plan_.nodes[position];
    NodeStats stats;
    stats.name = plan_.topology->counter_name(*p.node);
    stats.op = p.node->type();
    stats.device = to_text(plan_.topology->devices[static_cast<size_t>(p.device)]->name());
    stats.flops = flops(*p.node);
    if (const auto found = groups_.find(static_cast<int32_t>(position)); found != groups_.end()) {
      for (const Node* member : found->second->nodes) {
        if (member == p.node) continue;
        stats.fused.emplace_back(plan_.topology->counter_name(*member), member->type());
        stats.flops += flops(*member);
      }
    }
    stats.bytes_allocated = bytes_allocated(p);
    return stats;
  }

 private:
  // Where the plan knows all shapes: else the executor has counted.
  double flops(const Node& node) const {
    std::vector<Shape> inputs, outputs;
    const auto add = [&](const Output& value, std::vector<Shape>& shapes) {
      const auto slot =
          static_cast<size_t>(first_slot_.at(value.node)) + static_cast<size_t>(value.index);
      if (plan_.slots[slot].shape.fully_known()) shapes.push_back(plan_.slots[slot].shape.shape());
    };
    for (const Output& input : node.inputs()) add(input, inputs);
    for (int i = 0; i < node.num_outputs(); ++i) add({const_cast<Node*>(&node), i}, outputs);
    const bool all = inputs.size() == node.inputs().size() &&
                     static_cast<int>(outputs.size()) == node.num_outputs();
    return all ? count_flops(node.op(), inputs, outputs) : 0;
  }

  // Of nodes whose outputs only the run tells the executor has counted them.
  int64_t bytes_allocated(const PlanNode& p) const {
    if (p.kind != PlanNode::Kind::kKernel) return 0;
    auto sum = static_cast<int64_t>(p.kernel->scratch_bytes);
    for (int i = 0; i < p.node->num_outputs(); ++i) {
      const Slot& slot = plan_.slots[static_cast<size_t>(p.first_output) + static_cast<size_t>(i)];
      const bool own =
          slot.kind == Slot::Kind::kArena ? !over_an_input(p, slot) : !(i == 0 && p.forwarded >= 0);
      const bool planned = !p.node->op().def().allocates_outputs && slot.shape.fully_known();
      if (own && planned) sum += tensor_bytes(slot.dtype, slot.shape.shape());
    }
    return sum;
  }

  bool over_an_input(const PlanNode& p, const Slot& output) const {
    return std::ranges::any_of(p.inputs, [&](int32_t input) {
      const Slot& slot = plan_.slots[static_cast<size_t>(input)];
      return slot.kind == Slot::Kind::kArena && slot.memory == output.memory &&
             slot.offset == output.offset;
    });
  }

  const Plan& plan_;
  std::unordered_map<const Node*, int32_t> first_slot_;
  std::unordered_map<int32_t, const FusedGroup*> groups_;  // by position
};

constexpr size_t kMostNodes = 1'000'000;

void add_stats(const Counter& counter, const Plan& plan, const NodeTrace& trace,
               std::vector<NodeStats>& all) {
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodeTrace::Entry& entry = trace.entries[n];
    if (entry.thread == 0 || plan.nodes[n].kind == PlanNode::Kind::kOrder) continue;
    NodeStats stats = counter.stats(n);
    stats.start_ns = entry.start_ns - trace.begin_ns;
    stats.end_ns = entry.end_ns - trace.begin_ns;
    stats.thread = entry.thread;
    stats.bytes_in_use = entry.bytes_in_use;
    stats.bytes_allocated += entry.bytes_allocated;
    stats.flops += entry.flops;
    all.push_back(std::move(stats));
  }
}

}  // namespace

RunTrace::RunTrace(const Plan& plan) {
  own_.begin_ns = monotonic_ns();
  own_.entries.resize(plan.nodes.size());
}

std::unique_ptr<NodeTrace> RunTrace::begin_body(const Plan& plan) const {
  auto trace = std::make_unique<NodeTrace>();
  trace->begin_ns = own_.begin_ns;
  trace->entries.resize(plan.nodes.size());
  return trace;
}

void RunTrace::end_body(std::shared_ptr<const Plan> plan,
                        std::unique_ptr<NodeTrace> trace) noexcept {
  const std::lock_guard lock(mutex_);
  if (noted_ >= kMostNodes) return;
  noted_ += trace->entries.size();
  bodies_.push_back({std::move(plan), std::move(trace)});
}

std::vector<NodeStats> RunTrace::node_stats(const Plan& plan) const {
  std::vector<NodeStats> all;
  add_stats(Counter(plan), plan, own_, all);
  std::map<const Plan*, Counter> counters;
  for (const Body& body : bodies_) {
    const Counter& counter = counters.try_emplace(body.plan.get(), *body.plan).first->second;
    add_stats(counter, *body.plan, *body.trace, all);
  }
  std::ranges::stable_sort(all, {}, &NodeStats::start_ns);
  return all;
}

}  // namespace treenail
