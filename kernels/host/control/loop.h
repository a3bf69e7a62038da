// SPDX-License-Identifier: Apache-2.0
// A While before it runs, and its runs whose iterations overlap (loop_overlapping.cc).
#pragma once

#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "kernels/host/control/calls.h"

namespace treenail::host {

class Loop {
 public:
  explicit Loop(const PrepareContext& p);

  const int num_values;
  // Those that are read behind the loop, or that such a value or the condition is made of. Others
  // are left as they come in: what is kept for a gradient that this run does not ask for.
  const std::vector<bool> live;
  const std::vector<bool> decide;  // those that the condition reads
  FunctionBody& cond;
  FunctionBody& body;
  const int64_t parallel_iterations;

  // Errors: InvalidArgument.
  void check_invariants(const std::vector<Tensor>& values) const;
  void check_invariant(size_t i, const Tensor& value) const;
  // Whether iterations may overlap as far as can be told before they run: then the condition does
  // not wait.
  bool may_overlap() const { return may_overlap_; }
  // How many at a time that pays for, the first by these values; 0: none should overlap.
  int64_t overlaps(FunctionCall& first, const std::vector<Tensor>& values) const {
    return may_overlap_ ? first.overlaps(values, fixed_, decide, parallel_iterations) : 0;
  }

 private:
  std::vector<PartialShape> invariants_;
  std::vector<bool> fixed_;  // by value, whether its invariant tells its shape
  const bool may_overlap_;
};

// Of one run, after the condition has been called before the first iteration.
struct LoopCalls {
  std::unique_ptr<FunctionCall> cond, body;
};
// Iterations side by side of a loop whose first one is to run, by `values`, which are taken; the
// body has said how many at a time. What waits is started, what computes is run.
void start_overlapping(const Loop& loop, const RunContext& c, Done done, std::vector<Tensor> values,
                       LoopCalls calls, int64_t most);
void run_overlapping(const Loop& loop, RunContext& c, std::vector<Tensor> values, LoopCalls calls,
                     int64_t most);

}  // namespace treenail::host
