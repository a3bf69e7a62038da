// SPDX-License-Identifier: Apache-2.0
// Runs a plan on a frame. In canonical order on the calling thread (kernels split their own work
// over the pool), or as dependencies allow: where nodes side by side are faster, and where some can
// wait. Of several errors the first in canonical order is reported. What devices with queues were
// given is done, too, when a run ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "framework/base/cancellation.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/activation.h"
#include "framework/runtime/run/run_queue.h"

namespace treenail {

// Feeds stand in the frame's arg slots; fetches are left in their slots. Errors: of kernels, with
// op and node before the text; Cancelled or DeadlineExceeded as the frame's token says. On return,
// normal or not, none of the plan's kernels runs, waits or is queued. Returns the number of plan
// nodes executed.
int64_t execute_plan(const Plan& plan, Frame& frame);

// A run whose nodes go as dependencies allow: dependency counts and a queue of what is ready. The
// thread that calls run(), and helpers of the pool where nodes side by side are faster or bodies
// wait, take ready nodes; a cheap node runs at once on the thread that readied it. What is
// asynchronous is started, and whoever ends it puts its successors into the queue: while there is
// nothing else to do the caller of run() sleeps, and nobody else.
class Execution {
 public:
  Execution(const Plan& plan, Frame& frame);
  // Nothing of the frame may run or wait any more.
  ~Execution() = default;
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Runs all. How many nodes were executed.
  int64_t run();

  // For a frame whose arguments arrive one by one (Args::kOneByOne). The frame has the value of
  // feed i.
  void arrive(size_t feed) { own_.arrive(feed); }
  // Runs what has become ready, and returns when these plan nodes are done, although others may
  // wait for what is still to come.
  void run_until(std::span<const int32_t> wanted);
  // After cancelling the frame's token: returns when nothing runs or waits.
  void wind_up();

 private:
  void work();
  void drain_queues();

  const Plan& plan_;
  Frame& frame_;
  std::optional<TokenLink> link_;
  RunQueue queue_;
  Activation own_;
  std::exception_ptr drain_error_;
};

}  // namespace treenail
