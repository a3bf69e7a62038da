// SPDX-License-Identifier: Apache-2.0
// How kernels call functions of the graph: the bodies of Call, If, Case and While. A body is a plan
// of its own, made for the shapes of its arguments and for the state that they name. Who makes and
// runs it: runtime/run/functions.h.
//
// A body that waits() is called by kernels that are started (async_kernel.h): its nodes join those
// of the run, no thread waits for them, and calls within calls take no stack. Any other body runs
// on the thread that calls it.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/op/attribute.h"
#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// What a CallEnd is told where a body did not end well. No Error: it is located already, and passes
// through kernels as it is.
struct BodyError {
  std::exception_ptr error;  // null: of what the run has failed by, or was cancelled for, elsewhere
};
// Whether it is such a BodyError.
bool is_of_another(const std::exception_ptr& error);

// Who is told that a call which was started has ended, once, on a thread that works for the run,
// with no lock held: it may start other calls and end its own kernel, but computes nothing.
class CallEnd {
 public:
  // `error`: null where the results are set; else for Done::fail() as it is.
  virtual void ended(std::exception_ptr error) noexcept = 0;

 protected:
  ~CallEnd() = default;
};

// Who is told of a call that was opened, too, one thing at a time and in the same way, that these
// results are there; a number beyond the function's results is that of a state.
class PartsEnd : public CallEnd {
 public:
  virtual void arrived(std::span<const int32_t> results) noexcept = 0;

 protected:
  ~PartsEnd() = default;
};

// Calls of one function, one after the other, in one run; for one thread at a time.
class FunctionCall {
 public:
  virtual ~FunctionCall();
  // Takes the arguments: what nobody else holds may be overwritten. As many of each as the function
  // has. Errors: of the body's nodes, which they name; InvalidArgument for arguments that do not
  // fit in number, dtype or shape.
  virtual void run(std::span<Tensor> arguments, std::span<Tensor> results) = 0;
  // The same from AsyncKernel::start(), or from a CallEnd of it. Whether the call has ended, as one
  // of a body does in which nothing waits after all; else `end` is told when it has, maybe before
  // this returns, and until then the results stay where they are. Errors: as run();
  // ResourceExhausted where calls within calls are too many.
  virtual bool start(std::span<Tensor> arguments, std::span<Tensor> results, CallEnd& end) = 0;
  // Of a loop, the number of the iteration that the next call is for.
  int64_t iteration = -1;

  // Calls of a loop's body that overlap, each by an object of its own.
  //
  // How many of them at a time, at most `most`; 0: none should. That takes results that become the
  // next call's arguments with the shapes of these, which the caller sees to for those that are
  // `checked`, and that it pays to begin that call when those of them are there that `decide`
  // whether there is one.
  virtual int64_t overlaps(std::span<const Tensor> arguments, const std::vector<bool>& checked,
                           const std::vector<bool>& decide, int64_t most) = 0;
  // After that: for further calls beside this one's; what each hands on besides values (accesses
  // to one state follow the order of calls); whether a result is the argument itself.
  virtual std::unique_ptr<FunctionCall> another() const = 0;
  virtual int num_states() const = 0;
  virtual bool hands_on(int argument) const = 0;
  // A call none of whose arguments is there, and then each of them; of a state an empty tensor.
  // Errors: as start(), before anything runs.
  virtual void open(PartsEnd& end) = 0;
  virtual void give(int argument, Tensor value) = 0;
  // A result that has arrived, once.
  virtual Tensor take(int result) = 0;
  // No more arguments come: `end` is told when what runs has ended.
  virtual void give_up() = 0;
  // What waits in this run ends.
  virtual void cancel_waits() = 0;
  // Of a body that does not wait, the first of its calls: runs `begin`, then does on this thread
  // and helpers of the pool what that has opened and what follows, until all has ended.
  // `interrupted`: told what poll_interrupt() throws while this thread has nothing to do.
  virtual void work(FunctionRef<void()> begin,
                    FunctionRef<void(std::exception_ptr)> interrupted) = 0;
};

class FunctionBody {
 public:
  virtual ~FunctionBody();
  virtual std::vector<DType> result_types() const = 0;
  // Whether something in it may have to wait, or it calls itself.
  virtual bool waits() const = 0;
  // Whether it has operations that change what is around, or depend on it.
  virtual bool stateful() const = 0;
  // In the run of the kernel that `c` was given to, and no longer.
  virtual std::unique_ptr<FunctionCall> begin_call(const RunContext& c) = 0;
};

class FunctionCaller {
 public:
  virtual ~FunctionCaller();
  // The function as `call_site` calls it, a node or one of several calls of a node: random
  // operations in it have counters of their own for each site, whatever the function's name. Of its
  // results those that are not `wanted` are not computed, and stay undefined. Lives as long as the
  // caller of functions. Errors: NotFound; InvalidArgument for another number of results.
  virtual FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                             const std::vector<bool>& wanted) = 0;
  // By argument, whether the results that are wanted depend on it. Errors: NotFound.
  virtual std::vector<bool> arguments_read(const FunctionAttr& function,
                                           const std::vector<bool>& wanted) const = 0;
  // What an op that calls functions does with the state behind argument `argument` of them.
  virtual Access argument_access(const OpInstance& op, int argument) const = 0;
  // Whether a function that the op names waits(). Errors: NotFound.
  virtual bool waits(const OpInstance& op) const = 0;
};

}  // namespace treenail
