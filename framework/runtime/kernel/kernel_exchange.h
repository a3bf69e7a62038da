// SPDX-License-Identifier: Apache-2.0
// How kernels of a run give values to, and take them from, the other tasks that run their own
// pieces of one graph in the same step (ops _Send and _Recv), or have them run a piece (_RunPiece).
// Kernel-side header; who carries the bytes: distributed/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// A piece that another task has been given, and by whom it is known there.
struct PieceAt {
  std::string task;
  uint64_t number = 0;
  uint64_t incarnation = 0;  // of that task's process
  int inputs = 0, outputs = 0;
};

// Of one step, in one task. Values sent under one key are received in the order in which they were
// sent. Thread-safe.
class Exchange {
 public:
  virtual ~Exchange();
  // Never waits. `value` is kept until it is received. Errors: what the step has failed with.
  virtual void send(std::string_view key, Tensor value) = 0;
  // From the task that the key says, as AsyncKernel::start(): sets output 0.
  virtual void receive(std::string_view key, std::string_view from, RunContext c, Done done) = 0;
  // As AsyncKernel::start(): the piece runs once, fed with the inputs, and gives the outputs.
  virtual void run_piece(const PieceAt& piece, RunContext c, Done done) = 0;
};

// Of the run that the kernel is in. Errors: FailedPrecondition where it is a run of one task.
Exchange& exchange_of(const RunContext& c);

}  // namespace treenail
