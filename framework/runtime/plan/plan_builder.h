// SPDX-License-Identifier: Apache-2.0
// Specialising a topology, as an ordered list of steps, each of which fills fields: infer (shapes,
// constants), choose what runs together, slots and kinds, drop what nothing needs, connect, choose
// how to run, plan memory, count uses. Only plan.cc uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/runtime/plan/fusion.h"
#include "framework/runtime/plan/memory_plan.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<const Topology> topology, std::span<const PartialShape> feed_shapes,
              ResourceManager& resources, Args args);
  std::shared_ptr<const Plan> build();

 private:
  struct NodeState {
    std::span<ValueInfo> infos;  // of infos_
    int32_t position = 0;        // in the canonical order
    int32_t first_slot = 0;
    int32_t plan_node = -1;
    bool given = false;  // outputs are constants, args or handles: nothing runs
    bool needed = false;
    bool fused = false;              // runs as a part of another node
    int32_t group = -1;              // number in groups_, where the node runs one
    std::unique_ptr<Kernel> kernel;  // prepared early, to see whether it can be one with another
  };

  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  int32_t device_of(const Node& node) const { return topology_.places[index(node)]; }
  // Of the node's device; null: nothing is fused there.
  const Fuser* fuser_of(const Node& node) const {
    return fusers_[static_cast<size_t>(device_of(node))];
  }
  NodeState& state(const Node& node) { return states_[index(node)]; }
  int32_t slot_of(const Output& value) { return state(*value.node).first_slot + value.index; }
  Slot& slot(int32_t i) { return plan_->slots[static_cast<size_t>(i)]; }
  const ValueInfo& info(const Output& value) {
    return state(*value.node).infos[static_cast<size_t>(value.index)];
  }

  // Shapes and constants.
  void number_values();
  PlanMemory& memory(int32_t number) { return plan_->memories[static_cast<size_t>(number)]; }
  void infer();
  void infer_node(const Node& node, NodeState& s);
  std::shared_ptr<const HandleInfo> planned_handle_info(const Tensor& handle) const;
  void set_constant(const NodeState& s, size_t i, const Tensor& value);
  void upload_constants();

  // Nodes and kernels.
  void find_needed();
  void find_groups();
  bool sizes_are_possible(const FusionGroup& group);
  struct PreparedGroup;
  PreparedGroup prepare_group(FusionGroup found);
  void add_group(PreparedGroup group);
  bool prepare_early(const Node& node);
  // Chains that run some rows at a time (plan_rows.cc).
  void find_row_chains();
  friend class RowChainFinder;
  // Producers and consumers as one kernel (plan_compose.cc).
  void find_compositions();
  bool may_consume(const Node& node);
  void compose(const Node& consumer, int input);
  PreparedGroup prepare_producer(const Node& node);
  bool only_feed(std::span<const Node* const> nodes, const Node& reader);
  bool reads_what_is_written(const Output& value, const Node& writer);
  // Assignments that compute the new value over the old one (plan_update.cc).
  void find_updates();
  void update_in_place(const Node& assignment, const Resource& variable);
  void join_update(const Node& assignment, const Node& reader, PreparedGroup& giving,
                   std::vector<const Node*> nodes);

  void make_nodes();
  void choose_kind(const Node& node, NodeState& s, PlanNode& p);
  void choose_start(const Node& node, PlanNode& p);
  void choose_view(const OpDef& def, const NodeState& s, PlanNode& p);
  void note_view(const OpDef& def, const NodeState& s, const PlanNode& p);
  // Are all shapes and host values known that its kernel is prepared for?
  bool can_prepare(const Node& node);
  std::unique_ptr<Kernel> prepare_kernel(const Node& node, const NodeState& s);
  std::unique_ptr<Kernel> prepare_kernel(const Node& node, const std::vector<Shape>& inputs,
                                         const std::vector<Shape>& outputs);
  void place_outputs(const NodeState& s, PlanNode& p);

  // Edges.
  void connect();
  void add_waits(const Node& before, Numbers& waits);
  void add_order_before(const Node& input, Numbers& waits);
  void note_arrivals();
  // Iterations that overlap (plan_iteration.cc).
  void note_iteration();
  void wait_for_readers(int32_t fetch);
  void find_states();
  void note_ends();
  void set_edges();

  // Memory (plan_arena.cc).
  int32_t root_of(int32_t i) const;
  void mark_escaping();
  void choose_input_memory();
  void forward_memory();
  static bool any_in_place(const PlanNode& p, int output, FunctionRef<bool(int32_t)> take);
  bool same_extent(int32_t a, int32_t b);
  void plan_arena();
  void add_users(const PlanNode& p, int32_t n);
  void place_output(const PlanNode& p, int32_t n, int output, int32_t out);
  bool may_overwrite(const PlanNode& p, int32_t n, int32_t source, int32_t out);
  bool dies_at(int32_t source, int32_t n);
  bool seen_under_another_shape(const PlanNode& p, int32_t source);
  bool waits(int32_t n, int32_t earlier) const;
  void find_last_uses();
  int32_t add_block(int32_t memory, int64_t bytes, int32_t writer);
  void plan_memory_of(int32_t number);
  int64_t fresh_bytes(int32_t memory) const;
  int64_t input_memory_bytes() const;
  void share_slots();
  void count_uses();

  // Nodes found and prepared as one kernel, until the node that runs it becomes a plan node.
  struct PreparedGroup {
    FusionGroup group;           // of element-wise members, or empty
    std::vector<Output> inputs;  // of the kernel
    std::unique_ptr<Kernel> kernel;
    std::vector<const Node*> nodes;  // all that it computes, the one that runs it last
    bool apart = false;              // PlanNode::apart
  };

  std::shared_ptr<Plan> plan_;
  const Topology& topology_;
  std::span<const PartialShape> feed_shapes_;
  ResourceManager& resources_;
  const Args args_;
  std::vector<const Fuser*> fusers_;                     // by device of the topology
  std::vector<NodeState> states_;                        // by node id
  std::vector<ValueInfo> infos_;                         // by slot
  std::unordered_set<const Variable*> keyed_variables_;  // topology_.shape_variables
  std::vector<PreparedGroup> groups_;
  std::vector<int32_t> root_;  // by slot: what it is a view of, itself a root
  // By plan node, sorted: plan nodes, after ~i for each feed i that arrives while the plan runs.
  std::vector<Numbers> before_;
  std::vector<Numbers> passed_on_;  // by node id
  std::vector<MemoryBlock> blocks_;
  std::vector<int32_t> memory_of_block_;
  std::vector<int32_t> block_of_;  // by root slot
  std::vector<int32_t> last_use_;  // by root slot
};

}  // namespace treenail
