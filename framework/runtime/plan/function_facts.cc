// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/function_facts.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/graph/function_calls.h"

namespace treenail {
namespace {

// Calls within calls that stand on one thread's stack, some 2 KiB each; kernels below them want
// room, too.
constexpr int kMostOnStack = 64;

// The stronger of two claims on one state.
Access stronger(Access a, Access b) {
  for (const Access access : {Access::kOpaque, Access::kWrite, Access::kRead}) {
    if (a == access || b == access) return access;
  }
  return Access::kNone;
}

// What asks for no device runs on the CPU, but where its state is.
bool may_leave_host(const Node& node) {
  const auto has_handle = [](const auto& types) {
    return std::ranges::find(types, DType::kResource) != types.end();
  };
  return !node.device().empty() || !node.colocated_with().empty() ||
         has_handle(node.op().input_types()) || has_handle(node.op().output_types());
}

}  // namespace

const Function* FunctionFacts::find(std::string_view name) const {
  std::shared_lock<ForkSharedMutex> lock;
  if (growing_ != nullptr) lock = std::shared_lock(growing_->mutex());
  const Library& library = growing_ != nullptr ? growing_->functions() : library_;
  const auto found = library.find(name);  // never to go again
  return found == library.end() || found->second->body == nullptr ? nullptr : found->second.get();
}

const Function& FunctionFacts::function(std::string_view name) const {
  const Function* const found = find(name);
  if (found == nullptr) throw not_found("the graph has no function \"", name, "\"");
  return *found;
}

std::vector<bool> FunctionFacts::arguments_read(const FunctionAttr& attr,
                                                const std::vector<bool>& wanted) const {
  const Function& f = function(attr.name);
  std::vector<Output> inputs;
  for (const std::string& name : f.input_nodes) inputs.push_back(f.body->find_output(name));
  std::vector<bool> read(inputs.size());
  std::vector<Output> stack;
  std::unordered_set<const Node*> seen;
  for (size_t i = 0; i < wanted.size() && i < f.output_values.size(); ++i)
    if (wanted[i]) stack.push_back(f.body->find_output(f.output_values[i]));
  while (!stack.empty()) {
    const Output value = stack.back();
    stack.pop_back();
    if (const auto input = std::ranges::find(inputs, value); input != inputs.end()) {
      read[static_cast<size_t>(input - inputs.begin())] = true;
    } else if (seen.insert(value.node).second) {
      stack.insert(stack.end(), value.node->inputs().begin(), value.node->inputs().end());
      for (Node* before : value.node->control_inputs()) stack.push_back({before, 0});
    }
  }
  return read;
}

Access FunctionFacts::argument_access(const OpInstance& op, int argument) const {
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) forget();
  return access_by(op, argument);
}

std::vector<const Function*> FunctionFacts::called_by(const OpInstance& op) const {
  std::vector<const Function*> called;
  for (const std::string& name : functions_called(op)) called.push_back(&function(name));
  return called;
}

Access FunctionFacts::access_by(const OpInstance& op, int argument) const {
  Access access = Access::kNone;
  for (const Function* called : called_by(op))
    access = stronger(access, access_in(*called, argument));
  return access;
}

Access FunctionFacts::access_in(const Function& function, int argument) const {
  if (argument >= static_cast<int>(function.input_nodes.size())) return Access::kNone;
  // Of a function that calls itself with the argument: what it does beside that.
  const auto [known, first] = accesses_.try_emplace({&function, argument}, Access::kNone);
  if (!first) return known->second;
  return known->second = access_behind(
             function.body->find_output(function.input_nodes[static_cast<size_t>(argument)]));
}

Access FunctionFacts::access_behind(const Output& value) const {
  Access access = Access::kNone;
  for (const Node* consumer : value.node->consumers()) {
    const OpInstance& op = consumer->op();
    if (op.def().inputs.empty()) continue;  // a control edge
    const int first = op.input_range(static_cast<int>(op.def().inputs.size()) - 1).first;
    for (int i = 0; i < op.num_inputs(); ++i) {
      if (!(consumer->input(i) == value)) continue;
      access = stronger(access, op.input_def(i).access);
      if (i >= first) access = stronger(access, access_by(op, i - first));
      if (op.def().view_of == i)
        access = stronger(access, access_behind({const_cast<Node*>(consumer), 0}));
    }
  }
  return access;
}

bool FunctionFacts::waits(const OpInstance& op) const {
  return std::ranges::any_of(called_by(op), [&](const Function* f) { return waits(*f); });
}

bool FunctionFacts::waits(const Function& function) const {
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) forget();
  return below(function).waits;
}

bool FunctionFacts::calls_itself(const Function& function) const {
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) forget();
  std::vector<const Function*> stack{&function};
  std::unordered_set<const Function*> seen;
  while (!stack.empty()) {
    const Function* const caller = stack.back();
    stack.pop_back();
    for (const Function* called : body_of(*caller).calls) {
      if (called == &function) return true;
      if (seen.insert(called).second) stack.push_back(called);
    }
  }
  return false;
}

void FunctionFacts::forget() const {
  begin_anew(accesses_);
  begin_anew(bodies_);
  begin_anew(below_);
}

const FunctionFacts::Body& FunctionFacts::body_of(const Function& function) const {
  const auto [known, first] = bodies_.try_emplace(&function);
  Body& body = known->second;
  if (!first) return body;
  for (int id = 0; id < function.body->num_nodes(); ++id) {
    const Node* node = function.body->node(id);
    if (node == nullptr) continue;
    body.waits |= node->op().def().asynchronous || (queues_ && may_leave_host(*node));
    for (const Function* called : called_by(node->op()))
      if (std::ranges::find(body.calls, called) == body.calls.end()) body.calls.push_back(called);
  }
  return body;
}

// Depth first: who is met again while what it calls is looked at calls itself.
const FunctionFacts::Below& FunctionFacts::below(const Function& function) const {
  struct Step {
    const Function* function;
    size_t next = 0;  // of what it calls
    Below found;
  };
  if (const auto known = below_.find(&function); known != below_.end()) return known->second;
  std::vector<Step> path{{&function, 0, {body_of(function).waits, 1}}};
  std::unordered_set<const Function*> on_path{&function};
  for (;;) {
    Step& step = path.back();
    const Body& body = body_of(*step.function);
    if (step.next == body.calls.size()) {
      step.found.waits |= step.found.height > kMostOnStack;
      const Below& done = below_[step.function] = step.found;
      on_path.erase(step.function);
      path.pop_back();
      if (path.empty()) return done;
      continue;
    }
    const Function* const called = body.calls[step.next];
    if (on_path.contains(called)) {
      step.found.waits = true;
    } else if (const auto known = below_.find(called); known != below_.end()) {
      step.found.waits |= known->second.waits;
      step.found.height = std::max(step.found.height, known->second.height + 1);
    } else {
      on_path.insert(called);
      path.push_back({called, 0, {body_of(*called).waits, 1}});
      continue;
    }
    ++step.next;
  }
}

}  // namespace treenail
