// SPDX-License-Identifier: Apache-2.0
// One node of a plan on a frame: values in, kernel, values out, release of what nobody reads any
// more.
#pragma once

#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

// Runs a synchronous node. Errors: of the kernel, naming the node; what poll_interrupt() throws is
// the caller's own and passes unchanged, and so does a cancellation, which no node caused.
void run_node(const Plan& plan, const PlanNode& p, Frame& frame);

// Hands a queued node to its device, which says by `failure` what goes wrong there. Errors: as
// run_node().
void enqueue_node(const Plan& plan, const PlanNode& p, Frame& frame, Failure failure);

// All of a plan, in canonical order: for plans whose nodes run in_order(). How many ran.
int64_t run_nodes_in_order(const Plan& plan, Frame& frame);

// Starts an asynchronous node, which ends with `done`; what is thrown is thrown instead of that.
void start_node(const Plan& plan, const PlanNode& p, Frame& frame, Done done);
// After `done` without an error. Errors: of outputs that are not as planned.
void finish_node(const Plan& plan, const PlanNode& p, Frame& frame);

// The error in flight, as one of this node; of a fused group, of the one that is at fault.
[[noreturn]] void rethrow_located(const Plan& plan, const PlanNode& p, const Frame& frame);

}  // namespace treenail
