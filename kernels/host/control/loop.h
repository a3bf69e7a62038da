// SPDX-License-Identifier: Apache-2.0
// A While before it runs, and its runs whose iterations overlap (loop_overlapping.cc).
#pragma once

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
  // By value, whether its invariant tells its shape.
  std::vector<bool> fixed() const;
  // Whether iterations may overlap as far as can be told before they run.
  bool may_overlap() const { return parallel_iterations > 1 && !cond.waits() && !cond.stateful(); }

 private:
  std::vector<PartialShape> invariants_;
};

// Runs the loop with iterations side by side, and true; false, and nothing is done, where that does
// not pay. `values` are taken.
bool start_overlapping(const Loop& loop, const RunContext& c, Done done,
                       std::vector<Tensor>& values);

}  // namespace treenail::host
