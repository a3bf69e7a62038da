// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/graph_copier.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"

namespace treenail {
namespace {

// Bodies within bodies that take their calls' places: each is a level of this copier's stack.
constexpr int kDeepestBody = 32;

bool is_call(const Node& node) {
  return node.type() == "PartitionedCall" || node.type() == "StatefulPartitionedCall";
}

// Whether what is known of a value holds for it, whatever comes.
bool implies(const PartialShape& known, const PartialShape& wanted) {
  if (wanted.rank() < 0) return true;
  if (known.rank() != wanted.rank()) return false;
  for (int i = 0; i < wanted.rank(); ++i)
    if (wanted.dim(i) >= 0 && wanted.dim(i) != known.dim(i)) return false;
  return true;
}

// Reading a variable has a place in the order of accesses, whenever the arguments come.
bool acts_beyond_reading(const OpInstance& op) {
  if (!op.def().stateful) return false;
  for (int i = 0; i < op.num_inputs(); ++i)
    if (op.input_def(i).access == Access::kRead) return false;
  return true;
}

}  // namespace

GraphCopier::GraphCopier(const Graph& source, std::span<const Output> feeds, Graph& target,
                         Calls& calls, FunctionRef<Output(size_t)> feed)
    : source_(source),
      target_(target),
      calls_(calls),
      feed_(feed),
      needed_(static_cast<size_t>(source.num_nodes())),
      copies_(needed_.size()) {
  for (size_t i = 0; i < feeds.size(); ++i) fed_.emplace(key(feeds[i]), i);
}

GraphCopier::GraphCopier(const Graph& source, std::span<const Output> feeds, Graph& target,
                         Calls& calls, FunctionRef<Output(size_t)> feed, const Call& call)
    : source_(source),
      target_(target),
      calls_(calls),
      feed_(feed),
      call_(&call),
      needed_(static_cast<size_t>(source.num_nodes())),
      copies_(needed_.size()) {
  for (size_t i = 0; i < feeds.size(); ++i) fed_.emplace(key(feeds[i]), i);
}

// The value itself, where a node is there for gradients alone.
Output GraphCopier::behind(Output value) const {
  while (value.node->type() == "CustomGradient" && value.node->control_inputs().empty() &&
         !fed_.contains(key(value)))
    value = value.node->input(value.index);
  return value;
}

void GraphCopier::need(const Output& wanted) {
  const Output value = behind(wanted);
  if (!fed_.contains(key(value))) need(*value.node);
}

void GraphCopier::need(const Node& node) {
  if (fed_placeholder(node) == nullptr) needed_[index(node)] = true;
}

void GraphCopier::copy_needed() {
  for (size_t id = needed_.size(); id-- > 0;)
    if (needed_[id]) need_inputs(*source_.node(static_cast<int>(id)));
  for (size_t id = 0; id < needed_.size(); ++id)
    if (needed_[id]) copy(*source_.node(static_cast<int>(id)));
}

Output GraphCopier::copy_of(const Output& wanted) {
  const Output value = behind(wanted);
  if (const auto it = fed_.find(key(value)); it != fed_.end()) return feed_(it->second);
  if (!results_.empty()) {
    const auto call = results_.find(value.node);
    if (call != results_.end()) return call->second[static_cast<size_t>(value.index)];
  }
  return {copies_[index(*value.node)], value.index};
}

Node* GraphCopier::copy_of(const Node& node) {
  Node* const fed = fed_placeholder(node);
  return fed != nullptr ? fed : copies_[index(node)];
}

// Called by falling number, so that only what an edge that was added later leads to has to be
// looked at out of turn.
void GraphCopier::need_inputs(const Node& node) {
  stack_.push_back(&node);
  while (!stack_.empty()) {
    const Node* const reader = stack_.back();
    stack_.pop_back();
    const auto note = [&](const Node& other) {
      if (needed_[index(other)]) return;
      needed_[index(other)] = true;
      if (other.id() > node.id()) stack_.push_back(&other);
    };
    for (const Output& each : reader->inputs()) {
      const Output input = behind(each);
      if (!fed_.contains(key(input))) note(*input.node);
    }
    for (const Node* before : reader->control_inputs())
      if (fed_placeholder(*before) == nullptr) note(*before);
  }
}

// Iterative post-order: a node is copied once all it needs is, nearly always at once.
void GraphCopier::copy(const Node& root) {
  stack_.push_back(&root);
  while (!stack_.empty()) {
    const Node* node = stack_.back();
    if (copies_[index(*node)] != nullptr) {
      stack_.pop_back();
      continue;
    }
    const size_t depth = stack_.size();
    for (const Output& each : node->inputs()) {
      const Output input = behind(each);
      if (!fed_.contains(key(input)) && copies_[index(*input.node)] == nullptr)
        stack_.push_back(input.node);
    }
    for (const Node* before : node->control_inputs()) {
      if (fed_placeholder(*before) == nullptr && copies_[index(*before)] == nullptr)
        stack_.push_back(before);
    }
    if (stack_.size() != depth) continue;
    stack_.pop_back();
    poll_interrupt();
    copies_[index(*node)] = copy_ready(*node);
  }
}

Node* GraphCopier::copy_ready(const Node& node) {
  std::vector<Output> inputs;
  for (const Output& input : node.inputs()) inputs.push_back(copy_of(input));
  std::vector<Node*> control_inputs;
  for (const Node* before : node.control_inputs()) control_inputs.push_back(copy_of(*before));
  if (const Function* const function = body_for(node, inputs))
    return copy_body(node, *function, inputs, control_inputs);
  return add(node, inputs, std::move(control_inputs));
}

// A node of a body waits for what the call waits for: those that nothing in the body comes before,
// and those that act on what is around even for arguments that they do not read.
Node* GraphCopier::add(const Node& node, std::span<const Output> inputs,
                       std::vector<Node*> control_inputs) {
  if (call_ == nullptr) return &target_.add_copy(node, inputs, control_inputs);
  const bool acts = acts_beyond_reading(node.op());
  const auto from_body = [&](const Output& input) { return !fed_.contains(key(behind(input))); };
  if (acts || (node.control_inputs().empty() && std::ranges::none_of(node.inputs(), from_body)))
    control_inputs.insert(control_inputs.end(), call_->control_inputs.begin(),
                          call_->control_inputs.end());
  if (acts)
    for (const Output& argument : call_->inputs) control_inputs.push_back(argument.node);
  std::ranges::sort(control_inputs, {}, &Node::id);
  control_inputs.erase(std::unique(control_inputs.begin(), control_inputs.end()),
                       control_inputs.end());
  --calls_.most_nodes;
  Node& copy = target_.add_copy(node, inputs, control_inputs);
  target_.set_place(copy, call_->node, call_->path + node.original_name());
  if (!node.colocated_with().empty()) {
    std::vector<std::string> beside;
    for (const std::string& name : node.colocated_with()) beside.push_back(call_->path + name);
    target_.set_colocated(copy, beside);
  }
  return &copy;
}

// What stands for a placeholder, which is done once it is fed; null for other nodes: they run for
// who waits for them, though a value of theirs is fed.
Node* GraphCopier::fed_placeholder(const Node& node) {
  if (node.type() != "Placeholder") return nullptr;
  const auto it = fed_.find(key({const_cast<Node*>(&node), 0}));
  return it != fed_.end() ? feed_(it->second).node : nullptr;
}

// The function that the node calls, where its nodes may take the call's place; else null. Then
// whatever is wrong with the call is said when it is made.
const Function* GraphCopier::body_for(const Node& node, std::span<const Output> inputs) const {
  if (calls_.facts == nullptr || !is_call(node)) return nullptr;
  // What is computed again must not meet what was computed before.
  if (node.op().get_bool("recompute")) return nullptr;
  const Function* const found = calls_.facts->find(node.op().get<FunctionAttr>("f").name);
  if (found == nullptr) return nullptr;
  const Function& function = *found;
  if (function.input_nodes.size() != inputs.size() ||
      function.output_values.size() != static_cast<size_t>(node.num_outputs()) ||
      function.body->num_nodes() > calls_.most_nodes ||
      (call_ != nullptr && call_->depth == kDeepestBody) || calls_.facts->calls_itself(function))
    return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Output formal = function.body->find_output(function.input_nodes[i]);
    const ValueInfo& info = formal.node->info(formal.index);
    const ValueInfo& given = inputs[i].node->info(inputs[i].index);
    if (info.dtype != given.dtype || !implies(given.shape, info.shape)) return nullptr;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const Output value = function.body->find_output(function.output_values[static_cast<size_t>(i)]);
    if (value.node->op().output_type(value.index) != node.op().output_type(i)) return nullptr;
  }
  return &function;
}

// Gives the node that those wait for that wait for the call. Its results stand in results_.
Node* GraphCopier::copy_body(const Node& node, const Function& function,
                             std::span<const Output> inputs,
                             std::span<Node* const> control_inputs) {
  std::vector<Output> feeds;
  for (const std::string& name : function.input_nodes)
    feeds.push_back(function.body->find_output(name));
  const std::string outer = call_ != nullptr ? call_->path : "";
  const Call call{call_ != nullptr ? call_->node : node, concat(outer, node.original_name(), "/"),
                  inputs, control_inputs, call_ != nullptr ? call_->depth + 1 : 1};
  const auto feed = [&](size_t i) { return inputs[i]; };
  GraphCopier body(*function.body, feeds, target_, calls_, feed, call);
  std::vector<Output> values;
  for (const std::string& name : function.output_values)
    body.need(values.emplace_back(function.body->find_output(name)));
  body.copy_needed();
  std::vector<Output>& results = results_[&node];
  std::vector<Node*> last(control_inputs.begin(), control_inputs.end());
  for (const Output& argument : inputs) last.push_back(argument.node);
  for (const Output& value : values) last.push_back(results.emplace_back(body.copy_of(value)).node);
  std::ranges::sort(last, {}, &Node::id);
  last.erase(std::unique(last.begin(), last.end()), last.end());
  Node& over = target_.add(
      {.op = "NoOp", .name = node.name(), .inputs = {}, .attrs = {}, .control_inputs = last});
  target_.set_place(over, call.node, outer + node.original_name());
  return &over;
}

}  // namespace treenail
