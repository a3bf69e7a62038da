// SPDX-License-Identifier: Apache-2.0
// Which assignments of a plan compute the new value over the old one: v.assign(v * 2 + 1), where
// element-wise operations alone see the value that they read and the value that they give. Then no
// memory but the variable's own is needed. As for every update in place, a run that is cancelled in
// its middle leaves some elements old and some new.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/plan/plan_builder.h"
#include "framework/runtime/plan/variable_order.h"
#include "framework/runtime/state/variable.h"

namespace treenail {
namespace {

// Runs a kernel whose input in slot `read` and whose output in slot `written` are the value of the
// variable behind input 0. Its inputs lie in the slots `inputs`.
class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(std::unique_ptr<Kernel> kernel, std::vector<int32_t> inputs, int32_t read,
               int32_t written, DType dtype, Shape shape)
      : kernel_(std::move(kernel)),
        inputs_(std::move(inputs)),
        read_(read),
        written_(written),
        dtype_(dtype),
        shape_(std::move(shape)) {
    scratch_bytes = kernel_->scratch_bytes;
    cost_ns = kernel_->cost_ns;
  }

  void run(RunContext& c) const override {
    Variable& variable = variable_of_dtype(c.input(0), dtype_);
    const Variable::Write write(variable);
    if (!(write.value().shape() == shape_)) {
      throw failed_precondition("variable ", variable.name(), " is ", write.value(),
                                " where the running plan was made for ", shape_,
                                ": it changed its shape during the run");
    }
    RunContext inner = c;
    inner.input_slots_ = inputs_.data();
    inner.output_slot_ = written_;
    // Shares of the value, for as long as the lock is held.
    c.values_[read_] = c.values_[written_] = write.value();
    const auto give_up = [&] { c.values_[read_] = c.values_[written_] = Tensor(); };
    try {
      kernel_->run(inner);
    } catch (...) {
      give_up();
      throw;
    }
    give_up();
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<int32_t> inputs_;
  int32_t read_, written_;
  DType dtype_;
  Shape shape_;
};

// How many nodes write to each resource; null: to one that is not known yet.
std::unordered_map<const Resource*, int> writers_of(const Topology& topology) {
  std::unordered_map<const Resource*, int> writers;
  for (const Node* node : topology.order) {
    for (int i = 0; i < node->op().num_inputs(); ++i) {
      if (topology.access(*node, i) == Access::kWrite)
        ++writers[resource_behind(node->input(i), topology.handles)];
    }
  }
  return writers;
}

bool is_assignment(const OpInstance& op) {
  return op.num_outputs() == 0 && op.num_inputs() == 2 &&
         op.input_def(0).access == Access::kWrite && op.input_def(1).stored;
}

}  // namespace

void PlanBuilder::find_updates() {
  if (!topology_.fuse_elementwise) return;
  std::unordered_map<const Resource*, int> writers;
  for (const Node* node : topology_.order) {
    NodeState& s = state(*node);
    if (!s.needed || s.given || !is_assignment(node->op())) continue;
    if (writers.empty()) writers = writers_of(topology_);
    const Resource* const variable = resource_behind(node->input(0), topology_.handles);
    if (variable != nullptr && writers[variable] == 1 && !writers.contains(nullptr))
      update_in_place(*node, *variable);
  }
}

// Integers are left out: a division by zero in the middle would leave half of the old value.
void PlanBuilder::update_in_place(const Node& assignment, const Resource& variable) {
  const Node* const giver = assignment.input(1).node;
  NodeState& g = state(*giver);
  const DType dtype = giver->op().output_type(0);
  if (!g.needed || g.given || g.fused || giver->num_outputs() != 1 ||
      device_of(*giver) != device_of(assignment) || !topology_.device_of(*giver).is_host() ||
      !(is_floating(dtype) || is_complex(dtype)) || !g.infos[0].shape.fully_known())
    return;
  PreparedGroup alone{{}, {giver->inputs().begin(), giver->inputs().end()}, nullptr, {giver}};
  PreparedGroup& giving = g.group < 0 ? alone : groups_[static_cast<size_t>(g.group)];
  if (g.group >= 0 && giving.nodes.size() != giving.group.members.size()) return;
  const auto read = std::ranges::find_if(giving.inputs, [&](const Output& input) {
    const Node& node = *input.node;
    if (node.type() != "ReadVariableOp" || !state(node).needed ||
        resource_behind(node.input(0), topology_.handles) != &variable)
      return false;
    return node.op().output_type(0) == dtype && info(input).shape == g.infos[0].shape;
  });
  if (read == giving.inputs.end()) return;
  if (g.group < 0) {
    const int place = static_cast<int>(read - giving.inputs.begin());
    const auto& pairs = giver->op().def().in_place;
    if (!giver->op().def().elementwise ||
        std::ranges::find(pairs, std::pair(giver->op().input_arg(place), 0)) == pairs.end() ||
        !prepare_early(*giver))
      return;
  }
  const Node* const reader = read->node;
  std::vector<const Node*> nodes = giving.nodes;
  nodes.insert(nodes.begin(), reader);
  if (!only_feed(nodes, assignment)) return;
  join_update(assignment, *reader, giving, std::move(nodes));
}

void PlanBuilder::join_update(const Node& assignment, const Node& reader, PreparedGroup& giving,
                              std::vector<const Node*> nodes) {
  const Node* const giver = giving.nodes.back();
  NodeState& g = state(*giver);
  std::vector<int32_t> slots;
  PreparedGroup joined{{}, {assignment.input(0)}, nullptr, std::move(nodes)};
  for (const Output& input : giving.inputs) {
    slots.push_back(slot_of(input));
    if (input.node != &reader) joined.inputs.push_back(input);
  }
  std::unique_ptr<Kernel>& kernel = g.group < 0 ? g.kernel : giving.kernel;
  joined.kernel = std::make_unique<UpdateKernel>(
      std::move(kernel), std::move(slots), slot_of({const_cast<Node*>(&reader), 0}),
      slot_of(assignment.input(1)), giver->op().output_type(0), g.infos[0].shape.shape());
  joined.nodes.push_back(&assignment);
  g.group = -1;
  for (const Node* node : joined.nodes) state(*node).fused = node != &assignment;
  state(assignment).group = static_cast<int32_t>(groups_.size());
  groups_.push_back(std::move(joined));
}

}  // namespace treenail
