// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/function_call.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/run/executor.h"
#include "framework/runtime/run/node_run.h"
#include "framework/runtime/run/profile.h"

namespace treenail {
namespace {

constexpr int kDeepestCall = 10'000;

}  // namespace

Session::Functions::Call::Call(Body& body, const RunContext& c)
    : body_(body),
      caller_(c.frame_),
      node_(c.node_),
      scope_(c.frame_ != nullptr ? *c.frame_->scope : own_scope_.emplace()) {
  if (caller_ == nullptr) own_link_.emplace(c.token(), scope_.token);
}

void Session::Functions::Call::run(std::span<Tensor> arguments, std::span<Tensor> results) {
  begin(arguments);
  try {
    if (plan_->in_order()) {
      run_nodes_in_order(*plan_, **lease_);
    } else {
      Execution(*plan_, **lease_).run();
    }
  } catch (...) {
    end_trace();
    throw;
  }
  finish(results);
}

bool Session::Functions::Call::start(std::span<Tensor> arguments, std::span<Tensor> results,
                                     CallEnd& end) {
  Activation* const caller = caller_ != nullptr ? caller_->activation : nullptr;
  if (caller == nullptr) {  // there is nothing to join
    run(arguments, results);
    return true;
  }
  check_depth(*caller);
  begin(arguments);
  if (plan_->in_order()) {
    try {
      run_nodes_in_order(*plan_, **lease_);
    } catch (...) {
      end_trace();
      throw;
    }
    finish(results);
    return true;
  }
  results_ = results;
  end_ = &end;
  activation_.emplace(caller->queue(), *plan_, **lease_,
                      Activation::Caller{caller, node_, iteration, this});
  activation_->begin();
  return false;
}

void Session::Functions::Call::ended(std::exception_ptr error) noexcept {
  activation_.reset();
  if (error != nullptr || parts_end_ != nullptr) {
    end_trace();
    (**lease_).reset(*plan_);
  } else {
    finish(results_);
  }
  end_->ended(std::move(error));
}

void Session::Functions::Call::check_depth(const Activation& caller) const {
  if (caller.depth() < kDeepestCall) return;
  throw resource_exhausted("function \"", body_.function().name, "\" is called at a depth of ",
                           kDeepestCall,
                           " calls, which is the limit: does it call itself without an end?");
}

void Session::Functions::Call::begin(std::span<Tensor> arguments) {
  if (!fits(arguments)) choose_plan(arguments);
  Frame& frame = **lease_;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const int32_t slot = plan_->arg_slots[i];
    Tensor argument = std::move(arguments[i]);  // also where the body has no use for it
    if (slot >= 0) frame.values[static_cast<size_t>(slot)] = std::move(argument);
  }
  begin_trace();
}

void Session::Functions::Call::begin_trace() {
  if (scope_.trace == nullptr) [[likely]]
    return;
  trace_ = scope_.trace->begin_body(*plan_);
  (**lease_).trace = trace_.get();
}

void Session::Functions::Call::finish(std::span<Tensor> results) {
  Frame& frame = **lease_;
  end_trace();
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (body_.wanted()[i])
      results[i] = frame.values[static_cast<size_t>(plan_->fetch_slots[next++])];
  }
  frame.reset(*plan_);
}

void Session::Functions::Call::end_trace() noexcept {
  if (trace_ == nullptr) [[likely]]
    return;
  (**lease_).trace = nullptr;
  scope_.trace->end_body(plan_, std::move(trace_));
}

bool Session::Functions::Call::fits(std::span<const Tensor> arguments) const {
  if (plan_ == nullptr || arguments.size() != shapes_.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined()) continue;  // nothing reads it
    if (arguments[i].shape() != shapes_[i] || Body::state_of(arguments[i]) != states_[i])
      return false;
  }
  return true;
}

void Session::Functions::Call::choose_plan(std::span<const Tensor> arguments, Args args) {
  lease_.reset();
  plan_.reset();
  shapes_.clear();
  states_.clear();
  for (const Tensor& argument : arguments) {
    shapes_.push_back(argument.shape());
    states_.push_back(Body::state_of(argument));
  }
  const std::shared_ptr<Signature> signature = body_.signature_for(arguments, args);
  std::shared_ptr<const Plan> plan = body_.plan_for(*signature, arguments, &scope_.token);
  lease_.emplace(body_.session(), *plan, scope_);
  plan_ = std::move(plan);
}

}  // namespace treenail
