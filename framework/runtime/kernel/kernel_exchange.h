// SPDX-License-Identifier: Apache-2.0
// How kernels of a run give values to, and take them from, the other tasks that run their own
// pieces of one graph in the same step (ops _Send and _Recv). Kernel-side header; who carries the
// bytes: distributed/.
#pragma once

#include <string_view>

#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// Of one step, in one task. Values sent under one key are received in the order in which they were
// sent. Thread-safe.
class Exchange {
 public:
  virtual ~Exchange();
  // Never waits. `value` is kept until it is received. Errors: what the step has failed with.
  virtual void send(std::string_view key, Tensor value) = 0;
  // From the task that the key says, as AsyncKernel::start(): sets output 0.
  virtual void receive(std::string_view key, std::string_view from, RunContext c, Done done) = 0;
};

// Of the run that the kernel is in. Errors: FailedPrecondition where it is a run of one task.
Exchange& exchange_of(const RunContext& c);

}  // namespace treenail
