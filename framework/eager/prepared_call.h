// SPDX-License-Identifier: Apache-2.0
// Calls of immediate execution, prepared: resolving, inferring and preparing take longer than a
// small kernel runs, so a call that comes again - the same op with the same attributes on inputs of
// the same dtypes and shapes, with the same values where these are read in preparing - has its
// kernel kept. A table per thread; an entry gives way to another of its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/runtime/run/immediate.h"

namespace treenail {

class ResourceManager;

struct ImmediateCall {
  const OpDef& def;
  std::span<const Tensor* const> inputs;  // flat
  std::span<const NamedAttr> attrs;
  std::span<const int> arg_sizes;  // as in resolve_op
  ResourceManager* resources = nullptr;
  // That runs it, in whose memory the inputs lie (placed_call.h); null: a CPU.
  Device* device = nullptr;
};

class PreparedCall {
 public:
  const OpInstance& op() const { return op_; }
  // Whether it may wait for what others do, or for the queue of its device.
  bool may_wait() const;
  // An estimate; of what may wait, infinity.
  double cost_ns() const;

 private:
  friend class CallRun;
  friend class PreparedCalls;
  explicit PreparedCall(const ImmediateCall& call);
  bool answers(const ImmediateCall& call) const;
  bool may_be_kept(const ImmediateCall& call) const;
  void keep_key(const ImmediateCall& call);

  OpInstance op_;  // the kernel may refer to it
  PreparedKernel prepared_;
  // What it is kept by.
  std::vector<Shape> shapes_;   // of a variable's handle, that of the variable
  std::vector<DType> state_;    // of the variables behind handles
  std::vector<Tensor> values_;  // of inputs that were read; others undefined
  std::vector<NamedAttr> attrs_;
  std::vector<int> arg_sizes_;
  const ResourceManager* resources_ = nullptr;
  const Device* device_ = nullptr;
  uint64_t random_generation_ = 0;
};

// From the calling thread's table, or made. Errors bear no name of the op: the caller knows how
// they are to be told.
std::shared_ptr<const PreparedCall> prepare_call(const ImmediateCall& call);

// Of a random op, which has no node to be named after.
std::string immediate_counter_name(const OpInstance& op);
// Random numbers of immediate execution, and of functions that it calls, begin anew: every counter
// at 0.
void restart_random_counters();

// One run of a prepared call, on the caller's stack.
class CallRun {
 public:
  CallRun(const PreparedCall& call, std::span<const Tensor* const> inputs,
          const CancellationToken* token);
  ~CallRun();
  CallRun(const CallRun&) = delete;
  CallRun& operator=(const CallRun&) = delete;

  // Errors: as of prepare_call().
  void run();
  size_t num_outputs() const { return outputs_; }
  Tensor& output(size_t i) { return values_[inputs_ + i]; }

 private:
  void provide_outputs();
  void check_outputs() const;

  static constexpr size_t kInline = 6;
  const PreparedCall& call_;
  const CancellationToken* token_;
  const size_t inputs_, outputs_;
  Tensor* values_;  // inputs, then outputs
  alignas(Tensor) std::byte inline_[kInline * sizeof(Tensor)];
};

}  // namespace treenail
