// SPDX-License-Identifier: Apache-2.0
// Shapes, constants, kernels and edges of a plan; its memory: plan_arena.cc; producers and
// consumers as one kernel: plan_compose.cc; assignments that update in place: plan_update.cc.
#include "framework/runtime/plan/plan_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/thread_pool.h"
#include "framework/graph/function_calls.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/runtime/plan/fold.h"
#include "framework/runtime/plan/handle_info.h"
#include "framework/runtime/plan/schedule.h"
#include "framework/runtime/run/immediate.h"
#include "framework/tensor/tensor_bytes.h"

namespace treenail {
namespace {

bool all_constant(std::span<const ValueInfo> infos) {
  return std::all_of(infos.begin(), infos.end(),
                     [](const ValueInfo& info) { return info.constant != nullptr; });
}

bool outputs_planned(std::span<const ValueInfo> infos) {
  return std::all_of(infos.begin(), infos.end(),
                     [](const ValueInfo& info) { return info.shape.fully_known(); });
}

// Errors: as tensor_bytes(), before a kernel reckons with such numbers.
void check_sizes(std::span<const ValueInfo> infos) {
  for (const ValueInfo& info : infos) tensor_bytes(info.dtype, info.shape.shape());
}

// The copy is on its way.
Tensor uploaded(const Tensor& value, Device& device) {
  Tensor copy(value.dtype(), value.shape(), &device);
  device.copy_in(copy.raw(), value.raw(), value.bytes());
  if (copy.buffer()) copy.buffer()->keep_prepacked();  // nobody writes to a constant
  return copy;
}

}  // namespace

PlanBuilder::PlanBuilder(std::shared_ptr<const Topology> topology,
                         std::span<const PartialShape> feed_shapes, ResourceManager& resources,
                         Args args)
    : plan_(std::make_shared<Plan>()),
      topology_(*topology),
      feed_shapes_(feed_shapes),
      resources_(resources),
      args_(args) {
  for (Device* device : topology_.devices) {
    plan_->memories.push_back({device});
    const Fuser& fuser = KernelRegistry::instance().fuser(device->kind());
    fusers_.push_back(fuser.accepts == nullptr ? nullptr : &fuser);
  }
  memory(Topology::kHostMemory).used = true;
  plan_->topology = std::move(topology);
  plan_->resources = &resources;
  for (const auto& variable : topology_.shape_variables) keyed_variables_.insert(variable.get());
}

std::shared_ptr<const Plan> PlanBuilder::build() {
  number_values();
  infer();
  find_needed();
  upload_constants();
  find_groups();
  find_row_chains();
  find_compositions();
  find_updates();
  make_nodes();
  connect();
  mark_escaping();
  plan_->side_by_side = faster_side_by_side(plan_->nodes, ThreadPool::instance().num_threads());
  plan_arena();
  share_slots();
  count_uses();
  return std::move(plan_);
}

// Slots follow the canonical order.
void PlanBuilder::number_values() {
  states_.resize(static_cast<size_t>(topology_.graph->num_nodes()));
  size_t values = 0;
  for (const Node* node : topology_.order) values += static_cast<size_t>(node->num_outputs());
  infos_.resize(values);
  plan_->slots.resize(values);
  size_t next = 0;
  int32_t position = 0;
  for (const Node* node : topology_.order) {
    NodeState& s = state(*node);
    s.infos = std::span(infos_).subspan(next, static_cast<size_t>(node->num_outputs()));
    s.position = position++;
    s.first_slot = static_cast<int32_t>(next);
    next += s.infos.size();
  }
}

void PlanBuilder::infer() {
  for (Node* node : topology_.order) {
    poll_interrupt();
    NodeState& s = state(*node);
    for (int i = 0; i < node->num_outputs(); ++i)
      slot(s.first_slot + i).memory = topology_.memory_of({node, i});
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
    const Node* const arg = topology_.args[i];
    if (arg != nullptr && !topology_.handles.contains(arg))
      plan_->arg_slots[i] = state(*arg).first_slot;
  }
  for (const Node* retval : topology_.retvals)
    plan_->fetch_slots.push_back(slot_of(retval->input(0)));
}

void PlanBuilder::infer_node(const Node& node, NodeState& s) {
  const auto handle = topology_.handles.find(&node);
  if (node.type() == "_Arg" && handle == topology_.handles.end()) {
    s.infos[0].dtype = node.op().output_type(0);
    s.infos[0].shape = feed_shapes_[static_cast<size_t>(node.op().get_int("index"))];
    s.given = true;
    slot(s.first_slot).kind = Slot::Kind::kArg;
    return;
  }
  if (handle != topology_.handles.end()) {
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
  if (!all_constant(s.infos) && (topology_.device_of(node).folds() || same_everywhere(node.op()))) {
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

// Constants of a device's memory are copied there once, for all runs.
void PlanBuilder::upload_constants() {
  std::vector<Device*> busy;
  for (const Node* node : topology_.order) {
    const NodeState& s = state(*node);
    if (!s.given || !s.needed) continue;
    for (size_t i = 0; i < s.infos.size(); ++i) {
      const int32_t out = s.first_slot + static_cast<int32_t>(i);
      if (slot(out).kind != Slot::Kind::kConstant || slot(out).memory == Topology::kHostMemory)
        continue;
      Device* const device = memory(slot(out).memory).device;
      try {
        plan_->constants.emplace_back(out, uploaded(*s.infos[i].constant, *device));
      } catch (const Error& error) {
        throw located_error(*node, error);
      }
      if (std::ranges::find(busy, device) == busy.end()) busy.push_back(device);
    }
  }
  for (Device* device : busy) device->wait();  // before the host's values may go
}

// A variable that this plan assigns may change its shape on the way: only the declared shape is
// certain then.
std::shared_ptr<const HandleInfo> PlanBuilder::planned_handle_info(const Tensor& handle) const {
  const auto* variable =
      dynamic_cast<const Variable*>(handle.data<ResourceElement>()->object.get());
  if (variable == nullptr || keyed_variables_.contains(variable)) return handle_info_of(handle);
  return std::make_shared<const HandleInfo>(
      HandleInfo{variable->dtype(), variable->declared_shape()});
}

void PlanBuilder::set_constant(const NodeState& s, size_t i, const Tensor& value) {
  const int32_t out = s.first_slot + static_cast<int32_t>(i);
  slot(out).kind = Slot::Kind::kConstant;
  if (slot(out).memory != Topology::kHostMemory) return;  // upload_constants()
  plan_->constants.emplace_back(out, value);
  if (value.buffer()) value.buffer()->keep_prepacked();  // nobody writes to a constant
}

// A value whose consumers all became constants is not computed, unless computing it changes state.
void PlanBuilder::find_needed() {
  for (const Node* node : topology_.targets) state(*node).needed = true;
  for (const Node* node : topology_.retvals) state(*node).needed = true;
  for (auto it = topology_.order.rbegin(); it != topology_.order.rend(); ++it) {
    const Node& node = **it;
    NodeState& s = state(node);
    if (node.op().def().stateful) s.needed = true;
    if (!s.needed) continue;
    for (const Node* before : node.control_inputs()) state(*before).needed = true;
    if (s.given) continue;
    for (const Output& input : node.inputs()) state(*input.node).needed = true;
  }
}

void PlanBuilder::find_groups() {
  if (!topology_.fuse_elementwise) return;
  std::vector<FusionCandidate> candidates(states_.size());
  for (const Node* node : topology_.order) {
    const NodeState& s = state(*node);
    FusionCandidate& c = candidates[index(*node)];
    c.runs = s.needed && !s.given;
    c.device = device_of(*node);
    c.fuser = fuser_of(*node);
    const bool shapes_known =
        std::all_of(node->inputs().begin(), node->inputs().end(),
                    [&](const Output& input) { return info(input).shape.fully_known(); });
    if (shapes_known && !s.infos.empty() && s.infos[0].shape.fully_known()) {
      c.shape = &s.infos[0].shape;
    }
  }
  for (FusionGroup& group : find_fusion_groups(topology_.order, candidates)) {
    PreparedGroup prepared = prepare_group(std::move(group));
    if (prepared.kernel != nullptr) add_group(std::move(prepared));
  }
}

// A value too large for any memory is left to its own node, which says so.
bool PlanBuilder::sizes_are_possible(const FusionGroup& group) {
  try {
    for (const Node* member : group.members) check_sizes(state(*member).infos);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Its kernel is null where there can be none.
PlanBuilder::PreparedGroup PlanBuilder::prepare_group(FusionGroup found) {
  poll_interrupt();
  PreparedGroup prepared{std::move(found), {}, nullptr, {}};
  const FusionGroup& group = prepared.group;
  prepared.inputs = group.inputs;
  prepared.nodes = group.members;
  if (!sizes_are_possible(group)) return prepared;
  std::vector<Shape> shapes;
  for (const Output& input : group.inputs) shapes.push_back(info(input).shape.shape());
  const Node& last = *group.members.back();
  const Shape output = state(last).infos[0].shape.shape();
  prepared.kernel = fuser_of(last)->prepare(
      describe_group(group, std::move(shapes), output, topology_.device_of(last)));
  return prepared;
}

void PlanBuilder::add_group(PreparedGroup group) {
  const Node* const runs = group.nodes.back();
  for (const Node* node : group.nodes) {
    state(*node).fused = node != runs;
    state(*node).group = -1;
  }
  state(*runs).group = static_cast<int32_t>(groups_.size());
  groups_.push_back(std::move(group));
}

// To see whether it can be one with another; else the kernel is kept for its own plan node. Where
// that fails, it is said when the node's turn comes.
bool PlanBuilder::prepare_early(const Node& node) {
  NodeState& s = state(node);
  if (s.group >= 0 || s.fused || !can_prepare(node)) return false;
  if (s.kernel != nullptr) return true;
  try {
    s.kernel = prepare_kernel(node, s);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void PlanBuilder::make_nodes() {
  root_.resize(plan_->slots.size());
  std::iota(root_.begin(), root_.end(), 0);
  const auto runs = [&](const Node* node) {
    const NodeState& s = state(*node);
    return !s.given && s.needed && !s.fused && node->type() != "_Retval";
  };
  plan_->nodes.reserve(static_cast<size_t>(std::ranges::count_if(topology_.order, runs)));
  for (const Node* node : topology_.order) {
    if (!runs(node)) continue;
    NodeState& s = state(*node);
    poll_interrupt();
    s.plan_node = static_cast<int32_t>(plan_->nodes.size());
    PlanNode& p = plan_->nodes.emplace_back();
    p.node = node;
    p.device = device_of(*node);
    p.first_output = s.first_slot;
    std::span<const Output> inputs = node->inputs();
    if (s.group >= 0) {
      PreparedGroup& group = groups_[static_cast<size_t>(s.group)];
      inputs = group.inputs;
      p.kernel = std::move(group.kernel);
      p.fused = true;
      p.apart = group.apart;
      for (const Node* part : group.nodes) state(*part).plan_node = s.plan_node;
    }
    for (const Output& input : inputs) p.inputs.push_back(slot_of(input));
    if (s.group >= 0) {
      PreparedGroup& group = groups_[static_cast<size_t>(s.group)];
      plan_->groups.push_back({s.plan_node, std::move(group.nodes), std::move(group.inputs)});
    }
    try {
      choose_kind(*node, s, p);
    } catch (const Error& error) {
      throw located_error(*node, error);
    }
    if (p.kernel) plan_->cost_ns += p.kernel->cost_ns;
    choose_start(*node, p);
  }
}

// Who can wait, and whose work is queued. On a device with a queue whatever the plan does not know
// is waited for.
void PlanBuilder::choose_start(const Node& node, PlanNode& p) {
  const OpDef& def = node.op().def();
  const bool queue = !topology_.device_of(node).is_host();
  p.memory = topology_.memory(p.device);
  memory(p.memory).used = true;
  for (int i = 0; i < node.num_outputs(); ++i) memory(slot(p.first_output + i).memory).used = true;
  p.calls = topology_.functions != nullptr && calls_functions(node.op());
  if (p.kind == PlanNode::Kind::kDynamic) {
    p.asynchronous =
        def.asynchronous || queue || (p.calls && topology_.functions->waits(node.op()));
  } else if (p.kernel != nullptr && (def.asynchronous || queue || p.calls)) {
    p.asynchronous = dynamic_cast<const AsyncKernel*>(p.kernel.get()) != nullptr;
    p.queued = dynamic_cast<const QueuedKernel*>(p.kernel.get()) != nullptr;
    if (def.asynchronous) async_kernel(*p.kernel, node.op());
  }
  plan_->can_wait |= p.asynchronous || queue;
  plan_->bodies_wait |= p.asynchronous && p.calls;
}

bool PlanBuilder::can_prepare(const Node& node) {
  const OpDef& def = node.op().def();
  for (int i = 0; i < node.op().num_inputs(); ++i) {
    const ValueInfo& input = info(node.input(i));
    if (!input.shape.fully_known() || (node.op().input_def(i).host && !input.constant))
      return false;
  }
  return def.allocates_outputs || outputs_planned(state(node).infos);
}

void PlanBuilder::choose_kind(const Node& node, NodeState& s, PlanNode& p) {
  const OpDef& def = node.op().def();
  if (outputs_planned(s.infos)) check_sizes(s.infos);
  if (p.fused) {
    place_outputs(s, p);
  } else if (node.type() == "NoOp") {
    p.kind = PlanNode::Kind::kOrder;
  } else if (def.view_of >= 0 && outputs_planned(s.infos) &&
             info(node.input(def.view_of)).shape.fully_known()) {
    // Of a source whose shape shows when it is there, the rule must first see that it holds as many
    // elements.
    choose_view(def, s, p);
  } else if (can_prepare(node)) {
    p.kernel = s.kernel ? std::move(s.kernel) : prepare_kernel(node, s);
    place_outputs(s, p);
  } else {
    p.kind = PlanNode::Kind::kDynamic;
    for (size_t i = 0; i < s.infos.size(); ++i)
      slot(s.first_slot + static_cast<int32_t>(i)).kind = Slot::Kind::kRun;
    if (def.view_of >= 0) note_view(def, s, p);
  }
}

void PlanBuilder::choose_view(const OpDef& def, const NodeState& s, PlanNode& p) {
  p.kind = PlanNode::Kind::kView;
  const int32_t source = p.inputs[static_cast<size_t>(def.view_of)];
  const Slot::Kind kind = slot(source).kind;
  slot(s.first_slot).kind = kind == Slot::Kind::kArena ? Slot::Kind::kArena : Slot::Kind::kRun;
  note_view(def, s, p);
}

// Whoever reads the view reads the source's bytes, which stay for as long, although only the run
// tells the view's shape.
void PlanBuilder::note_view(const OpDef& def, const NodeState& s, const PlanNode& p) {
  root_[static_cast<size_t>(s.first_slot)] = root_of(p.inputs[static_cast<size_t>(def.view_of)]);
}

std::unique_ptr<Kernel> PlanBuilder::prepare_kernel(const Node& node, const NodeState& s) {
  std::vector<Shape> inputs, outputs;
  for (const Output& input : node.inputs()) inputs.push_back(info(input).shape.shape());
  if (outputs_planned(s.infos)) {
    check_sizes(s.infos);
    for (const ValueInfo& out : s.infos) outputs.push_back(out.shape.shape());
  }
  return prepare_kernel(node, inputs, outputs);
}

// For shapes that may be other than the node's.
std::unique_ptr<Kernel> PlanBuilder::prepare_kernel(const Node& node,
                                                    const std::vector<Shape>& inputs,
                                                    const std::vector<Shape>& outputs) {
  std::vector<const Tensor*> host_values;
  for (const Output& input : node.inputs()) host_values.push_back(info(input).constant.get());
  Device& device = topology_.device_of(node);
  const std::string counter = topology_.counter_name(node);
  const NodeServices services{&resources_,
                              node.original_name(),
                              counter,
                              &device,
                              topology_.functions.get(),
                              &node,
                              topology_.awaited.contains(&node)};
  const ArrayPrepareContext context(node.op(), inputs, outputs, host_values, services);
  return KernelRegistry::instance().find(node.op(), device.kind())(context);
}

void PlanBuilder::place_outputs(const NodeState& s, PlanNode& p) {
  for (size_t i = 0; i < s.infos.size(); ++i) {
    const int32_t out = s.first_slot + static_cast<int32_t>(i);
    if (p.node->op().def().allocates_outputs) {
      slot(out).kind = Slot::Kind::kRun;
      if (slot(out).shape.fully_known() &&
          is_read({const_cast<Node*>(p.node), static_cast<int>(i)}))
        p.kernel_gives.push_back(out);
    } else {
      slot(out).kind = is_plain(slot(out).dtype) ? Slot::Kind::kArena : Slot::Kind::kRun;
      if (slot(out).kind == Slot::Kind::kRun) p.fresh.push_back(out);
    }
  }
}

// A fused member's edges are its group's.
void PlanBuilder::connect() {
  before_.resize(plan_->nodes.size());
  passed_on_.resize(states_.size());
  if (args_ != Args::kAtOnce) {
    for (size_t i = 0; i < topology_.args.size(); ++i) {
      if (topology_.args[i] != nullptr)
        passed_on_[index(*topology_.args[i])].push_back(~static_cast<int32_t>(i));
    }
  }
  for (const Node* node : topology_.order) {
    poll_interrupt();
    const int32_t p = state(*node).plan_node;
    Numbers& all = p < 0 ? passed_on_[index(*node)] : before_[static_cast<size_t>(p)];
    for (const Output& input : node->inputs()) {
      if (p < 0) {
        add_order_before(*input.node, all);
      } else {
        add_waits(*input.node, all);
      }
    }
    for (const Node* before : node->control_inputs()) add_waits(*before, all);
    if (p >= 0) erase_if(all, [p](int32_t other) { return other == p; });
    sort_once(all);
    if (p >= 0 && !all.empty() && all.back() >= p) {  // would wait for itself
      throw internal_error("node \"", node->original_name(), "\" waits for one that runs later");
    }
  }
  if (args_ != Args::kAtOnce) note_arrivals();
  if (args_ == Args::kIteration) note_iteration();
  set_edges();
}

void PlanBuilder::note_arrivals() {
  plan_->can_wait = true;
  plan_->arg_successors.resize(topology_.args.size());
  for (const Node* retval : topology_.retvals)
    add_waits(*retval->input(0).node, plan_->fetch_waits.emplace_back());
  for (const Node* target : topology_.targets)
    add_waits(*target, plan_->target_waits.emplace_back());
}

void PlanBuilder::set_edges() {
  for (size_t p = 0; p < plan_->nodes.size(); ++p) {
    const auto n = static_cast<int32_t>(p);
    plan_->nodes[p].waits_for = static_cast<int32_t>(before_[p].size());
    for (const int32_t earlier : before_[p]) {
      if (earlier < 0) {
        const int32_t feed = ~earlier;
        plan_->arg_successors[static_cast<size_t>(feed)].push_back(n);
      } else {
        plan_->nodes[static_cast<size_t>(earlier)].successors.push_back(n);
      }
    }
    erase_if(before_[p], [](int32_t earlier) { return earlier < 0; });
  }
}

// A node that does not run passes on what it would have waited for.
void PlanBuilder::add_waits(const Node& before, Numbers& waits) {
  if (const int32_t p = state(before).plan_node; p >= 0) {
    waits.push_back(p);
  } else {
    for (const int32_t earlier : passed_on_[index(before)]) waits.push_back(earlier);
  }
}

// What a node that does not run takes over from an input: not the value, which may be computed
// later, in a group that itself reads what is made of this node; but the order it stands in.
void PlanBuilder::add_order_before(const Node& input, Numbers& waits) {
  if (state(input).plan_node < 0 || input.op().def().stateful) {
    add_waits(input, waits);
  } else {
    for (const Node* before : input.control_inputs()) add_waits(*before, waits);
  }
}

}  // namespace treenail
