// SPDX-License-Identifier: Apache-2.0
// The functions of a session's graph as its plans call them. Each place of call has a body of its
// own, so that random operations there have counters of their own; a function that calls itself
// shares the outer call's. A body is planned as a session's signature is, and for the state that
// its arguments name besides. It runs on the thread that calls it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/graph/function.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/run/session_impl.h"
#include "framework/runtime/run/signature.h"

namespace treenail {

class Session::Functions final : public FunctionCaller {
 public:
  using Library = std::map<std::string, std::shared_ptr<const Function>, std::less<>>;
  // The session outlives the runs of plans that hold this. The graph's functions as they are now.
  Functions(Impl& session, Library library);
  ~Functions() override;

  FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                     const std::vector<bool>& wanted) override;
  std::vector<bool> arguments_read(const FunctionAttr& function,
                                   const std::vector<bool>& wanted) const override;
  Access argument_access(const OpInstance& op, int argument) const override;

 private:
  class Body;
  class Call;

  const Function& function(std::string_view name) const;
  Body& body_within(Body* caller, const FunctionAttr& function, std::string_view call_site,
                    const std::vector<bool>& wanted);
  // With access_mutex_ held.
  Access access_by(const OpInstance& op, int argument) const;
  Access access_in(const Function& function, int argument) const;
  Access access_behind(const Output& value) const;

  Impl& session_;
  const Library library_;
  ForkMutex mutex_;                                                   // guards what follows
  std::map<std::string, std::unique_ptr<Body>, std::less<>> bodies_;  // by call path and wanted
  mutable ForkMutex access_mutex_;                                    // guards what follows
  mutable std::map<std::pair<const Function*, int>, Access> accesses_;
};

}  // namespace treenail
