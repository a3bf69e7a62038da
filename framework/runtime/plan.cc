// SPDX-License-Identifier: Apache-2.0
// Specialising a topology, as an ordered list of steps: infer (shapes, constants), choose slots and
// kinds, drop what nothing needs, connect, choose how to run, plan memory, prepare constants. Each
// step fills fields of Builder.
#include "framework/runtime/plan.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/handle_info.h"
#include "framework/runtime/immediate.h"
#include "framework/runtime/kernel_registry.h"
#include "framework/runtime/memory_plan.h"
#include "framework/runtime/schedule.h"
#include "framework/tensor/allocator.h"

namespace treenail {
namespace {

class Builder {
 public:
  Builder(std::shared_ptr<const Topology> topology, std::span<const PartialShape> feed_shapes,
          ResourceManager& resources)
      : plan_(std::make_shared<Plan>()),
        topology_(*topology),
        feed_shapes_(feed_shapes),
        resources_(resources) {
    plan_->topology = std::move(topology);
    plan_->resources = &resources;
  }

  std::shared_ptr<const Plan> build() {
    infer();
    make_nodes();
    connect();
    mark_escaping();
    plan_->side_by_side = faster_side_by_side(plan_->nodes, ThreadPool::instance().num_threads());
    plan_arena();
    count_uses();
    return std::move(plan_);
  }

 private:
  struct NodeState {
    std::vector<ValueInfo> infos;
    int32_t first_slot = 0;
    int32_t plan_node = -1;
    bool given = false;  // outputs are constants, args or handles: nothing runs
  };

  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  NodeState& state(const Node& node) { return states_[index(node)]; }
  int32_t slot_of(const Output& value) { return state(*value.node).first_slot + value.index; }
  Slot& slot(int32_t i) { return plan_->slots[static_cast<size_t>(i)]; }
  const ValueInfo& info(const Output& value) {
    return state(*value.node).infos[static_cast<size_t>(value.index)];
  }

  // --- infer ---
  void infer() {
    states_.resize(static_cast<size_t>(topology_.graph->num_nodes()));
    for (const Node* node : topology_.order) {
      NodeState& s = state(*node);
      s.infos.resize(static_cast<size_t>(node->num_outputs()));
      s.first_slot = static_cast<int32_t>(plan_->slots.size());
      plan_->slots.resize(plan_->slots.size() + s.infos.size());
      plan_->constants.resize(plan_->slots.size());
      try {
        infer_node(*node, s);
      } catch (const Error& error) {
        throw located_error(*node, error);
      }
      for (size_t i = 0; i < s.infos.size(); ++i) {
        Slot& out = slot(s.first_slot + static_cast<int32_t>(i));
        out.dtype = s.infos[i].dtype;
        out.shape = s.infos[i].shape;
      }
    }
    plan_->arg_slots.assign(feed_shapes_.size(), -1);
    for (size_t i = 0; i < topology_.args.size(); ++i) {
      if (topology_.args[i] != nullptr) plan_->arg_slots[i] = state(*topology_.args[i]).first_slot;
    }
    for (const Node* retval : topology_.retvals)
      plan_->fetch_slots.push_back(slot_of(retval->input(0)));
  }

  void infer_node(const Node& node, NodeState& s) {
    if (node.type() == "_Arg") {
      s.infos[0].dtype = node.op().output_type(0);
      s.infos[0].shape = feed_shapes_[static_cast<size_t>(node.op().get_int("index"))];
      s.given = true;
      slot(s.first_slot).kind = Slot::Kind::kArg;
      return;
    }
    if (const auto handle = topology_.handles.find(&node); handle != topology_.handles.end()) {
      s.infos[0] = node.info(0);
      s.infos[0].handle = planned_handle_info(handle->second);
      set_constant(s, 0, handle->second);
      s.given = true;
      return;
    }
    std::vector<const ValueInfo*> inputs;
    for (const Output& input : node.inputs()) inputs.push_back(&info(input));
    infer_shapes(node.op(), inputs, s.infos);
    if (node.op().def().stateful || s.infos.empty()) return;
    if (!all_constant(s.infos)) {
      std::vector<Tensor> folded = fold_constant(node.op(), inputs, s.infos);
      for (size_t i = 0; i < folded.size(); ++i) {
        s.infos[i].shape = folded[i].shape();
        s.infos[i].value = partial_value_of(folded[i]);
        s.infos[i].constant = std::make_shared<const Tensor>(std::move(folded[i]));
      }
    }
    if (!all_constant(s.infos)) return;
    s.given = true;
    for (size_t i = 0; i < s.infos.size(); ++i) set_constant(s, i, *s.infos[i].constant);
  }

  static bool all_constant(std::span<const ValueInfo> infos) {
    return std::all_of(infos.begin(), infos.end(),
                       [](const ValueInfo& info) { return info.constant != nullptr; });
  }

  // A variable that this plan assigns may change its shape on the way: only the declared shape is
  // certain then.
  std::shared_ptr<const HandleInfo> planned_handle_info(const Tensor& handle) const {
    const auto* variable =
        dynamic_cast<const Variable*>(handle.data<ResourceElement>()->object.get());
    if (variable == nullptr) return nullptr;
    const auto& keyed = topology_.shape_variables;
    const bool in_key =
        std::any_of(keyed.begin(), keyed.end(), [&](const auto& v) { return v.get() == variable; });
    if (in_key) return handle_info_of(handle);
    return std::make_shared<const HandleInfo>(
        HandleInfo{variable->dtype(), variable->declared_shape()});
  }

  void set_constant(const NodeState& s, size_t i, const Tensor& value) {
    const int32_t out = s.first_slot + static_cast<int32_t>(i);
    slot(out).kind = Slot::Kind::kConstant;
    plan_->constants[static_cast<size_t>(out)] = value;
  }

  // --- nodes ---
  void make_nodes() {
    const std::vector<bool> needed = needed_nodes();
    for (const Node* node : topology_.order) {
      NodeState& s = state(*node);
      if (s.given || !needed[index(*node)] || node->type() == "_Retval") continue;
      s.plan_node = static_cast<int32_t>(plan_->nodes.size());
      PlanNode& p = plan_->nodes.emplace_back();
      p.node = node;
      p.first_output = s.first_slot;
      for (const Output& input : node->inputs()) p.inputs.push_back(slot_of(input));
      try {
        choose_kind(*node, s, p);
      } catch (const Error& error) {
        throw located_error(*node, error);
      }
      if (p.kernel) plan_->cost_ns += p.kernel->cost_ns;
    }
  }

  // A value whose consumers all became constants is not computed, unless computing it changes
  // state.
  std::vector<bool> needed_nodes() {
    std::vector<bool> needed(states_.size());
    for (const Node* node : topology_.targets) needed[index(*node)] = true;
    for (const Node* node : topology_.retvals) needed[index(*node)] = true;
    for (auto it = topology_.order.rbegin(); it != topology_.order.rend(); ++it) {
      const Node& node = **it;
      if (node.op().def().stateful) needed[index(node)] = true;
      if (!needed[index(node)]) continue;
      for (const Node* before : node.control_inputs()) needed[index(*before)] = true;
      if (state(node).given) continue;
      for (const Output& input : node.inputs()) needed[index(*input.node)] = true;
    }
    return needed;
  }

  void choose_kind(const Node& node, NodeState& s, PlanNode& p) {
    const OpDef& def = node.op().def();
    const bool inputs_planned =
        std::all_of(node.inputs().begin(), node.inputs().end(),
                    [&](const Output& input) { return info(input).shape.fully_known(); });
    bool hosts_known = true;
    for (int i = 0; i < node.op().num_inputs(); ++i) {
      if (node.op().input_def(i).host && !info(node.input(i)).constant) hosts_known = false;
    }
    const bool outputs_planned =
        std::all_of(s.infos.begin(), s.infos.end(),
                    [](const ValueInfo& info) { return info.shape.fully_known(); });
    if (node.type() == "NoOp") {
      p.kind = PlanNode::Kind::kOrder;
    } else if (def.view_of >= 0 && outputs_planned) {
      choose_view(def, s, p);
    } else if (inputs_planned && hosts_known && (outputs_planned || def.allocates_outputs)) {
      prepare_kernel(node, s, p, outputs_planned);
    } else {
      p.kind = PlanNode::Kind::kDynamic;
      for (size_t i = 0; i < s.infos.size(); ++i)
        slot(s.first_slot + static_cast<int32_t>(i)).kind = Slot::Kind::kRun;
    }
  }

  void choose_view(const OpDef& def, const NodeState& s, PlanNode& p) {
    p.kind = PlanNode::Kind::kView;
    p.view_shape = s.infos[0].shape.shape();
    const int32_t source = p.inputs[static_cast<size_t>(def.view_of)];
    const Slot::Kind kind = slot(source).kind;
    slot(s.first_slot).kind = kind == Slot::Kind::kArena ? Slot::Kind::kArena : Slot::Kind::kRun;
    view_source_.resize(plan_->slots.size(), -1);
    view_source_[static_cast<size_t>(s.first_slot)] = source;
  }

  void prepare_kernel(const Node& node, const NodeState& s, PlanNode& p, bool outputs_planned) {
    std::vector<Shape> input_shapes, output_shapes;
    std::vector<const Tensor*> host_values;
    for (const Output& input : node.inputs()) {
      input_shapes.push_back(info(input).shape.shape());
      host_values.push_back(info(input).constant.get());
    }
    for (const ValueInfo& out : s.infos) {
      if (outputs_planned) output_shapes.push_back(out.shape.shape());
    }
    const NodeServices services{&resources_, node.original_name()};
    const ArrayPrepareContext context(node.op(), input_shapes, output_shapes, host_values,
                                      services);
    p.kernel = KernelRegistry::instance().find(node.op())(context);
    for (size_t i = 0; i < s.infos.size(); ++i) {
      const int32_t out = s.first_slot + static_cast<int32_t>(i);
      if (node.op().def().allocates_outputs) {
        slot(out).kind = Slot::Kind::kRun;
        if (slot(out).shape.fully_known()) p.kernel_gives.push_back(out);
      } else {
        slot(out).kind = is_plain(slot(out).dtype) ? Slot::Kind::kArena : Slot::Kind::kRun;
        if (slot(out).kind == Slot::Kind::kRun) p.fresh.push_back(out);
      }
    }
  }

  // --- edges ---
  void connect() {
    before_.resize(plan_->nodes.size());
    passed_on_.resize(states_.size());
    for (const Node* node : topology_.order) {
      std::vector<int32_t> waits;
      for (const Output& input : node->inputs()) add_waits(*input.node, waits);
      for (const Node* before : node->control_inputs()) add_waits(*before, waits);
      std::sort(waits.begin(), waits.end());
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      const int32_t p = state(*node).plan_node;
      if (p < 0) {
        passed_on_[index(*node)] = std::move(waits);
        continue;
      }
      plan_->nodes[static_cast<size_t>(p)].waits_for = static_cast<int32_t>(waits.size());
      for (const int32_t earlier : waits)
        plan_->nodes[static_cast<size_t>(earlier)].successors.push_back(p);
      before_[static_cast<size_t>(p)] = std::move(waits);
    }
  }

  // A node that does not run passes on what it would have waited for.
  void add_waits(const Node& before, std::vector<int32_t>& waits) {
    if (const int32_t p = state(before).plan_node; p >= 0) {
      waits.push_back(p);
    } else {
      const std::vector<int32_t>& earlier = passed_on_[index(before)];
      waits.insert(waits.end(), earlier.begin(), earlier.end());
    }
  }

  // --- memory ---
  int32_t root_of(int32_t i) const {
    while (static_cast<size_t>(i) < view_source_.size() &&
           view_source_[static_cast<size_t>(i)] >= 0) {
      i = view_source_[static_cast<size_t>(i)];
    }
    return i;
  }

  // What is fetched outlives the run: fresh memory instead of the arena.
  void mark_escaping() {
    view_source_.resize(plan_->slots.size(), -1);
    for (const int32_t fetched : plan_->fetch_slots) {
      const int32_t root = root_of(fetched);
      if (slot(root).kind == Slot::Kind::kArena) slot(root).kind = Slot::Kind::kRun;
    }
    for (PlanNode& p : plan_->nodes) {
      if (p.kind == PlanNode::Kind::kView) {
        const int32_t out = p.first_output;
        if (slot(root_of(out)).kind == Slot::Kind::kArena) {
          p.kind = PlanNode::Kind::kOrder;  // the frame holds the view already
        } else {
          slot(out).kind = Slot::Kind::kRun;
        }
      }
      if (p.kind != PlanNode::Kind::kKernel || p.node->op().def().allocates_outputs) continue;
      p.fresh.clear();
      for (int i = 0; i < p.node->num_outputs(); ++i) {
        if (slot(p.first_output + i).kind == Slot::Kind::kRun)
          p.fresh.push_back(p.first_output + i);
      }
    }
  }

  void plan_arena() {
    block_of_.assign(plan_->slots.size(), -1);
    std::vector<std::pair<size_t, size_t>> scratch;  // plan node, block
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      PlanNode& p = plan_->nodes[n];
      add_users(p, static_cast<int32_t>(n));
      if (p.kind != PlanNode::Kind::kKernel) continue;
      for (int i = 0; i < p.node->num_outputs(); ++i) {
        const int32_t out = p.first_output + i;
        if (slot(out).kind == Slot::Kind::kArena) place_output(p, static_cast<int32_t>(n), i, out);
      }
      if (p.kernel->scratch_bytes != 0) {
        scratch.emplace_back(n, blocks_.size());
        blocks_.push_back(
            {static_cast<int64_t>(p.kernel->scratch_bytes), {static_cast<int32_t>(n)}});
      }
    }
    plan_->arena_bytes = plan_memory(blocks_, before_, !plan_->side_by_side);
    for (const auto& [n, block] : scratch) plan_->nodes[n].scratch_offset = blocks_[block].offset;
    for (size_t i = 0; i < plan_->slots.size(); ++i) {
      if (plan_->slots[i].kind != Slot::Kind::kArena) continue;
      const int32_t block = block_of_[static_cast<size_t>(root_of(static_cast<int32_t>(i)))];
      plan_->slots[i].offset = blocks_[static_cast<size_t>(block)].offset;
    }
  }

  void add_users(const PlanNode& p, int32_t n) {
    for (const int32_t input : p.inputs) {
      const int32_t block = block_of_[static_cast<size_t>(root_of(input))];
      if (block >= 0) blocks_[static_cast<size_t>(block)].users.push_back(n);
    }
  }

  // A new block, or that of an input that dies here, where the op permits it.
  void place_output(const PlanNode& p, int32_t n, int output, int32_t out) {
    const int64_t bytes =
        slot(out).shape.num_elements() * static_cast<int64_t>(dtype_size(slot(out).dtype));
    for (const auto& [from, to] : p.node->op().def().in_place) {
      if (to != p.node->op().output_arg(output)) continue;
      const int32_t source = p.inputs[static_cast<size_t>(p.node->op().input_range(from).first)];
      const int32_t block = block_of_[static_cast<size_t>(root_of(source))];
      if (block < 0 || slot(source).dtype != slot(out).dtype ||
          !(slot(source).shape == slot(out).shape))
        continue;
      if (!dies_at(source, n) || seen_under_another_shape(p, source)) continue;
      block_of_[static_cast<size_t>(out)] = block;
      return;
    }
    block_of_[static_cast<size_t>(out)] = static_cast<int32_t>(blocks_.size());
    blocks_.push_back({std::max<int64_t>(bytes, 1), {n}});
  }

  // No node other than n, and nothing after n, reads the bytes behind this slot; no other output of
  // n lies there already.
  bool dies_at(int32_t source, int32_t n) {
    if (last_use_.empty()) find_last_uses();
    const int32_t root = root_of(source);
    if (last_use_[static_cast<size_t>(root)] != n) return false;
    const auto& users = blocks_[static_cast<size_t>(block_of_[static_cast<size_t>(root)])].users;
    for (int i = 0; i < plan_->nodes[static_cast<size_t>(n)].node->num_outputs(); ++i) {
      const int32_t out = plan_->nodes[static_cast<size_t>(n)].first_output + i;
      if (block_of_[static_cast<size_t>(out)] == block_of_[static_cast<size_t>(root)]) return false;
    }
    if (!plan_->side_by_side) return true;
    return std::all_of(users.begin(), users.end(),
                       [&](int32_t user) { return user == n || waits(n, user); });
  }

  // An element-wise kernel may overwrite an input that it also reads under the same shape, not
  // under another one.
  bool seen_under_another_shape(const PlanNode& p, int32_t source) {
    return std::any_of(p.inputs.begin(), p.inputs.end(), [&](int32_t input) {
      return root_of(input) == root_of(source) && !(slot(input).shape == slot(source).shape);
    });
  }

  // Direct edges suffice here: a use that is an ancestor only through others keeps its own memory.
  bool waits(int32_t n, int32_t earlier) const {
    const auto& before = before_[static_cast<size_t>(n)];
    return std::binary_search(before.begin(), before.end(), earlier);
  }

  // By root slot: the last plan node in canonical order that reads or writes bytes there. In-place
  // chains are followed because each output has a slot of its own that takes over the block's later
  // uses.
  void find_last_uses() {
    last_use_.assign(plan_->slots.size(), -1);
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      for (const int32_t input : plan_->nodes[n].inputs) {
        last_use_[static_cast<size_t>(root_of(input))] = static_cast<int32_t>(n);
      }
    }
  }

  // --- release ---
  void count_uses() {
    for (PlanNode& p : plan_->nodes) {
      std::vector<int32_t> inputs = p.inputs;
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      for (const int32_t input : inputs) {
        const bool fetched = std::find(plan_->fetch_slots.begin(), plan_->fetch_slots.end(),
                                       input) != plan_->fetch_slots.end();
        if (slot(input).kind != Slot::Kind::kRun || fetched) continue;
        p.counted.push_back(input);
        ++slot(input).uses;
      }
    }
    for (size_t i = 0; i < plan_->slots.size(); ++i) {
      const Slot::Kind kind = plan_->slots[i].kind;
      if (kind == Slot::Kind::kRun || kind == Slot::Kind::kArg)
        plan_->run_slots.push_back(static_cast<int32_t>(i));
    }
  }

  std::shared_ptr<Plan> plan_;
  const Topology& topology_;
  std::span<const PartialShape> feed_shapes_;
  ResourceManager& resources_;
  std::vector<NodeState> states_;                // by node id
  std::vector<int32_t> view_source_;             // by slot; -1: not a planned view
  std::vector<std::vector<int32_t>> before_;     // by plan node, sorted
  std::vector<std::vector<int32_t>> passed_on_;  // by node id
  std::vector<MemoryBlock> blocks_;
  std::vector<int32_t> block_of_;  // by root slot
  std::vector<int32_t> last_use_;  // by root slot
};

}  // namespace

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Topology> topology,
                                      std::span<const PartialShape> feed_shapes,
                                      ResourceManager& resources) {
  return Builder(std::move(topology), feed_shapes, resources).build();
}

Plan::~Plan() = default;

namespace {

// No node's own doing, but the largest value tells most about who asked for so much.
Error arena_error(const Plan& plan, const Error& error) {
  const Node* largest = nullptr;
  const Slot* value = nullptr;
  int64_t most = -1;
  for (const PlanNode& p : plan.nodes) {
    for (int i = 0; i < p.node->num_outputs(); ++i) {
      const Slot& slot = plan.slots[static_cast<size_t>(p.first_output + i)];
      if (slot.kind != Slot::Kind::kArena) continue;
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
                                 plan.arena_bytes, " bytes, the largest is ", value->dtype,
                                 value->shape, " of this node")));
}

}  // namespace

Frame::Frame(const Plan& plan)
    : values(plan.constants),
      arena_bytes(plan.arena_bytes),
      uses(new std::atomic<int32_t>[plan.slots.size()]),
      waiting(new std::atomic<int32_t>[plan.nodes.size()]) {
  if (arena_bytes != 0) {
    try {
      arena = static_cast<std::byte*>(Allocator::host().allocate(static_cast<size_t>(arena_bytes)));
    } catch (const Error& error) {
      throw arena_error(plan, error);
    }
  }
  const IntrusivePtr<Buffer> buffer = Buffer::arena(arena, static_cast<size_t>(arena_bytes));
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    uses[i].store(slot.uses, std::memory_order_relaxed);
    if (slot.kind == Slot::Kind::kArena) {
      values[i] = Tensor(slot.dtype, slot.shape.shape(), buffer, static_cast<size_t>(slot.offset));
    }
  }
}

Frame::~Frame() {
  values.clear();
  if (arena != nullptr) Allocator::host().deallocate(arena, static_cast<size_t>(arena_bytes));
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
