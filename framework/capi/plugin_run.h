// SPDX-License-Identifier: Apache-2.0
// What the two kinds of plugin kernels share: a call that a plugin's prepare has looked at, and the
// context that its run or start is given. Kernels that compute: plugin_kernel.cc; that wait:
// plugin_waiting.cc; what a plugin may do while they run: plugin_run.cc.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "framework/capi/plugin_registration.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::capi {

class PreparedCall {
 public:
  PreparedCall(const PluginKernel& kernel, const OpInstance& op) : kernel_(kernel), op_(op) {}
  ~PreparedCall();
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  // Calls the plugin's prepare; sets what it says of scratch memory and cost in `made`.
  void prepare(const PrepareContext& c, Kernel& made);
  // After a run: outputs that the plugin had to make are there, and bools are 0 or 1. Errors:
  // Internal.
  void check_outputs(RunContext& c) const;

  const PluginKernel& kernel() const { return kernel_; }
  const OpInstance& op() const { return op_; }
  const void* state() const { return state_; }
  bool has_input(int32_t input) const { return input >= 0 && input < op_.num_inputs(); }
  bool has_output(int32_t output) const { return output >= 0 && output < op_.num_outputs(); }

 private:
  const PluginKernel& kernel_;
  const OpInstance op_;
  void* state_ = nullptr;
};

// A cost that a plugin gave: 0 for what is no cost, NaN too.
double plugin_cost(double nanoseconds);

// A kernel that is started, prepared.
std::unique_ptr<Kernel> make_waiting_kernel(const PrepareContext& c, const PluginKernel& kernel);

}  // namespace treenail::capi

struct tn_run_context {
  treenail::RunContext& c;
  const treenail::capi::PreparedCall& call;
  std::exception_ptr failure = nullptr;  // what ended a parallel loop: leaves the run, whatever the
                                         // plugin makes of it
  bool started = false;                  // it is a StartedRun (plugin_waiting.cc)
};
