// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements, as strided copies from inputs to outputs. What is copied where is
// the same on every kind of device and is said once; each carries it out in its own way.
#pragma once

#include <span>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {

struct CopyPlan {
  struct Part {
    StridedCopy copy;
    int from = 0;  // input
    int to = 0;    // output
  };
  bool zeros = false;  // where no copy goes; else the copies cover the outputs
  std::vector<Part> parts;
};

struct CopyOp {
  const char* name;
  CopyPlan (*plan)(const PrepareContext& p);
};

// With the host's kernels. `ops` stay where they are.
void add_copy_ops(KernelRegistry& registry, std::span<const CopyOp> ops);
// All that were added: a registry was filled before.
std::vector<CopyOp> copy_ops();
// Of the op that is being prepared.
CopyPlan plan_copies(const PrepareContext& p);

}  // namespace treenail::host
