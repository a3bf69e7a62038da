// SPDX-License-Identifier: Apache-2.0
// A function of a graph, called with immediate execution: the kernel of a call, whose body is
// planned as it is within graphs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class Graph;

class CalledFunction {
 public:
  // The function `name` of `library`, which may grow afterwards. Random operations in it have
  // counters under `site`; state is the process's own. Errors: NotFound.
  CalledFunction(const std::shared_ptr<Graph>& library, const std::string& name, std::string site);

  ~CalledFunction();
  CalledFunction(const CalledFunction&) = delete;
  CalledFunction& operator=(const CalledFunction&) = delete;

  // Takes shares of the arguments, or copies: arguments and results lie in the host's memory, as
  // those of a call node do. Several threads may call at once. Errors: of the body's nodes,
  // which they name; InvalidArgument for arguments that do not fit in number, dtype or shape;
  // Cancelled.
  std::vector<Tensor> call(std::vector<Tensor> arguments, const CancellationToken* token) const;

  const OpInstance& op() const { return op_; }

 private:
  const std::string site_;
  std::shared_ptr<FunctionCaller> functions_;
  OpInstance op_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace treenail
