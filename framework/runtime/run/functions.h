// SPDX-License-Identifier: Apache-2.0
// The functions of a session's graph as its plans call them. Each place of call has a body of its
// own (function_body.h), so that random operations there have counters of their own; a function
// that calls itself shares the outer call's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/fork.h"
#include "framework/graph/function.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/plan/function_facts.h"
#include "framework/runtime/run/session_impl.h"
#include "framework/runtime/run/signature.h"

namespace treenail {

class Session::Functions final : public FunctionCaller {
 public:
  // The session outlives the runs of plans that hold this. The graph's functions as they are now.
  Functions(Impl& session, FunctionFacts::Library library);
  // And those it gets later.
  Functions(Impl& session, std::shared_ptr<const Graph> graph);
  ~Functions() override;

  FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                     const std::vector<bool>& wanted) override;
  std::vector<bool> arguments_read(const FunctionAttr& function,
                                   const std::vector<bool>& wanted) const override {
    return facts_.arguments_read(function, wanted);
  }
  Access argument_access(const OpInstance& op, int argument) const override {
    return facts_.argument_access(op, argument);
  }
  bool waits(const OpInstance& op) const override { return facts_.waits(op); }
  const FunctionFacts& facts() const { return facts_; }

 private:
  class Body;
  class Call;

  Body& body_within(Body* caller, const FunctionAttr& function, std::string_view call_site,
                    const std::vector<bool>& wanted);

  Impl& session_;
  const FunctionFacts facts_;
  ForkMutex mutex_;                                                   // guards what follows
  std::map<std::string, std::unique_ptr<Body>, std::less<>> bodies_;  // by path, name, wanted
};

}  // namespace treenail
