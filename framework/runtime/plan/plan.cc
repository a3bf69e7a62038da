// SPDX-License-Identifier: Apache-2.0
// What runs of a plan share and what each has for itself. How a plan is made: plan_builder.h.
#include "framework/runtime/plan/plan.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/plan/plan_builder.h"

namespace treenail {

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Topology> topology,
                                      std::span<const PartialShape> feed_shapes,
                                      ResourceManager& resources, Args args) {
  return PlanBuilder(std::move(topology), feed_shapes, resources, args).build();
}

Plan::~Plan() = default;

// No node's own doing, but the largest value tells most about who asked for so much.
Error arena_error(const Plan& plan, size_t memory, const Error& error) {
  const Node* largest = nullptr;
  const Slot* value = nullptr;
  int64_t most = -1;
  for (const PlanNode& p : plan.nodes) {
    for (int i = 0; i < p.node->num_outputs(); ++i) {
      const Slot& slot = plan.slots[static_cast<size_t>(p.first_output) + static_cast<size_t>(i)];
      if (slot.kind != Slot::Kind::kArena || static_cast<size_t>(slot.memory) != memory) continue;
      const int64_t bytes =
          slot.shape.shape().num_elements() * static_cast<int64_t>(dtype_size(slot.dtype));
      if (bytes <= most) continue;
      most = bytes;
      largest = p.node;
      value = &slot;
    }
  }
  if (largest == nullptr) return error;
  return located_error(
      *largest,
      Error(error.code(), concat(error.message(), "; the intermediate values of this run ", "need ",
                                 plan.memories[memory].arena_bytes, " bytes, the largest is ",
                                 value->dtype, value->shape, " of this node")));
}

Frame::Frame(const Plan& plan)
    : values(plan.slots.size()),
      arenas(new std::byte*[plan.memories.size()]()),
      uses(new std::atomic<int32_t>[plan.slots.size()]),
      waiting(new std::atomic<int32_t>[plan.nodes.size()]) {
  if (!plan.in_order()) {
    ready = std::make_unique<int32_t[]>(plan.nodes.size());
    below = std::make_unique<int32_t[]>(plan.nodes.size());
  }
  for (const auto& [slot, value] : plan.constants) values[static_cast<size_t>(slot)] = value;
  for (size_t i = 0; i < plan.slots.size(); ++i)
    uses[i].store(plan.slots[i].uses, std::memory_order_relaxed);
}

void Frame::use_arena(const Plan& plan, size_t memory, std::byte* data) {
  if (data == arenas[memory]) return;
  arenas[memory] = nullptr;  // until all values lie there
  const PlanMemory& there = plan.memories[memory];
  const IntrusivePtr<Buffer> buffer =
      Buffer::arena(data, static_cast<size_t>(there.arena_bytes), there.owner());
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.kind != Slot::Kind::kArena || static_cast<size_t>(slot.memory) != memory) continue;
    values[i] = Tensor(slot.dtype, slot.shape.shape(), buffer, static_cast<size_t>(slot.offset));
  }
  arenas[memory] = data;
}

void Frame::reset(const Plan& plan) {
  for (const int32_t i : plan.run_slots) {
    values[static_cast<size_t>(i)] = Tensor();
    uses[static_cast<size_t>(i)].store(plan.slots[static_cast<size_t>(i)].uses,
                                       std::memory_order_relaxed);
  }
}

Error located_error(const Node& node, const Error& error) {
  const std::string created = creation_text(node);
  return Error(error.code(), concat(error_prefix(node.type(), node.original_name()),
                                    error.message(), created.empty() ? "" : "\n", created));
}

}  // namespace treenail
