// SPDX-License-Identifier: Apache-2.0
// How kernels call functions of the graph: the bodies of Call, If, Case and While. A body is a plan
// of its own, made for the shapes of its arguments and for the state that they name. Who makes and
// runs it: runtime/run/functions.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/op/attribute.h"
#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Calls of one function, one after the other, in one run; for one thread at a time.
class FunctionCall {
 public:
  virtual ~FunctionCall();
  // Takes the arguments: what nobody else holds may be overwritten. As many of each as the function
  // has. Errors: of the body's nodes, which they name; InvalidArgument for arguments that do not
  // fit in number, dtype or shape.
  virtual void run(std::span<Tensor> arguments, std::span<Tensor> results) = 0;
};

class FunctionBody {
 public:
  virtual ~FunctionBody();
  virtual std::vector<DType> result_types() const = 0;
  // The token, which may be null, outlives the call.
  virtual std::unique_ptr<FunctionCall> begin_call(const CancellationToken* token) = 0;
};

class FunctionCaller {
 public:
  virtual ~FunctionCaller();
  // The function as the node `call_site` calls it: random operations in it have counters of their
  // own for each. Of its results those that are not `wanted` are not computed, and stay undefined.
  // Lives as long as the caller of functions. Errors: NotFound; InvalidArgument for another number
  // of results.
  virtual FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                             const std::vector<bool>& wanted) = 0;
  // By argument, whether the results that are wanted depend on it. Errors: NotFound.
  virtual std::vector<bool> arguments_read(const FunctionAttr& function,
                                           const std::vector<bool>& wanted) const = 0;
  // What an op that calls functions does with the state behind argument `argument` of them.
  virtual Access argument_access(const OpInstance& op, int argument) const = 0;
};

}  // namespace treenail
