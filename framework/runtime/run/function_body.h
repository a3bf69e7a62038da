// SPDX-License-Identifier: Apache-2.0
// A function as one place calls it. It is planned as a session's signature is, and for the state
// that its arguments name besides. How it runs: function_call.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/run/functions.h"

namespace treenail {

class Session::Functions::Body final : public FunctionBody, public FunctionCaller {
 public:
  Body(Functions& all, Body* caller, const Function& function, std::string path,
       const std::vector<bool>& wanted);

  std::vector<DType> result_types() const override;
  bool waits() const override { return waits_; }
  bool stateful() const override;
  std::unique_ptr<FunctionCall> begin_call(const RunContext& c) override;

  FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                     const std::vector<bool>& wanted) override {
    return all_.body_within(this, function, call_site, wanted);
  }
  std::vector<bool> arguments_read(const FunctionAttr& function,
                                   const std::vector<bool>& wanted) const override {
    return all_.arguments_read(function, wanted);
  }
  Access argument_access(const OpInstance& op, int argument) const override {
    return all_.argument_access(op, argument);
  }
  bool waits(const OpInstance& op) const override { return all_.waits(op); }

  const Function& function() const { return function_; }
  const std::string& path() const { return path_; }
  const std::vector<bool>& wanted() const { return wanted_; }
  // This body, or one around it, of the function.
  Body* innermost(const Function& function, const std::vector<bool>& wanted);

  // For the state that the arguments name, and arguments that come so. Errors: InvalidArgument for
  // another number of them.
  std::shared_ptr<Signature> signature_for(std::span<const Tensor> arguments, Args args);
  std::shared_ptr<const Plan> plan_for(Signature& signature, std::span<const Tensor> arguments,
                                       const CancellationToken* token);
  Impl& session() const { return all_.session_; }

  // What a handle refers to; null for other values.
  static const Resource* state_of(const Tensor& argument) {
    return argument.dtype() == DType::kResource ? argument.data<ResourceElement>()->object.get()
                                                : nullptr;
  }

 private:
  struct Known {
    std::vector<Tensor> handles;  // by argument; undefined where it is none
    Args args = Args::kAtOnce;
    std::shared_ptr<Signature> signature;
  };

  Functions& all_;
  Body* const caller_;
  const Function& function_;
  const std::string path_;
  const std::vector<bool> wanted_;  // by result
  const bool waits_;
  std::vector<Output> feeds_, fetches_;
  ForkMutex mutex_;           // guards what follows
  std::vector<Known> known_;  // most recently used first
};

}  // namespace treenail
