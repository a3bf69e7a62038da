// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/function_body.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/run/function_call.h"
#include "framework/runtime/run/run_limits.h"

namespace treenail {
namespace {

// Sets of state for which a body keeps its plans.
constexpr size_t kKeptStates = 16;

}  // namespace

Session::Functions::Body::Body(Functions& all, Body* caller, const Function& function,
                               std::string path, const std::vector<bool>& wanted)
    : all_(all),
      caller_(caller),
      function_(function),
      path_(std::move(path)),
      wanted_(wanted),
      waits_(all.facts_.waits(function)) {
  for (const std::string& name : function.input_nodes)
    feeds_.push_back(function.body->find_output(name));
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) fetches_.push_back(function.body->find_output(function.output_values[i]));
}

std::vector<DType> Session::Functions::Body::result_types() const {
  std::vector<DType> types;
  for (const std::string& name : function_.output_values) {
    const Output value = function_.body->find_output(name);
    types.push_back(value.node->op().output_type(value.index));
  }
  return types;
}

// An argument's place is a placeholder, which no graph may merge or leave out.
bool Session::Functions::Body::stateful() const {
  for (int id = 0; id < function_.body->num_nodes(); ++id) {
    const Node* const node = function_.body->node(id);
    if (node == nullptr || !node->op().def().stateful) continue;
    const auto is_node = [&](const Output& feed) { return feed.node == node; };
    if (std::ranges::none_of(feeds_, is_node)) return true;
  }
  return false;
}

std::unique_ptr<FunctionCall> Session::Functions::Body::begin_call(const RunContext& c) {
  return std::make_unique<Call>(*this, c);
}

Session::Functions::Body* Session::Functions::Body::innermost(const Function& function,
                                                              const std::vector<bool>& wanted) {
  Body* body = this;
  while (body != nullptr && (&body->function_ != &function || body->wanted_ != wanted))
    body = body->caller_;
  return body;
}

std::shared_ptr<Session::Signature> Session::Functions::Body::signature_for(
    std::span<const Tensor> arguments, Args args) {
  if (arguments.size() != function_.inputs.size()) {
    throw invalid_argument("function \"", function_.name, "\" takes ", function_.inputs.size(),
                           " arguments, not ", arguments.size());
  }
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(known_);
  const auto same = [&](const Known& known) {
    if (known.args != args) return false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Tensor& handle = known.handles[i];
      if ((handle.defined() ? state_of(handle) : nullptr) != state_of(arguments[i])) return false;
    }
    return true;
  };
  auto found = std::find_if(known_.begin(), known_.end(), same);
  if (found == known_.end()) {
    if (known_.size() == kKeptStates) known_.pop_back();
    Known made;
    for (const Tensor& argument : arguments)
      made.handles.push_back(argument.dtype() == DType::kResource ? argument : Tensor());
    made.args = args;
    made.signature = std::make_shared<Signature>(feeds_, fetches_, std::vector<Node*>{}, args);
    found = known_.insert(known_.end(), std::move(made));
  }
  std::rotate(known_.begin(), found, found + 1);
  return known_[0].signature;
}

std::shared_ptr<const Plan> Session::Functions::Body::plan_for(Signature& signature,
                                                               std::span<const Tensor> arguments,
                                                               const CancellationToken* token) {
  RunOptions options;
  options.token = token;
  RunLimits limits(options);
  bool specialized = false;
  std::vector<Tensor> handles;
  for (const Tensor& argument : arguments)
    handles.push_back(argument.dtype() == DType::kResource ? argument : Tensor());
  // Whoever holds a plan of this body holds the functions.
  const CalledBody called{{std::shared_ptr<void>(), this}, all_.facts_, path_, handles};
  std::shared_ptr<const Plan> plan = signature.plan_for(
      session().planning(*function_.body, &called), arguments, limits, specialized);
  limits.end_planning();
  return plan;
}

}  // namespace treenail
