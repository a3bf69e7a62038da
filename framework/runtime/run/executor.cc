// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/executor.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/base/interrupt.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/run/node_run.h"

namespace treenail {

int64_t execute_plan(const Plan& plan, Frame& frame) {
  if (plan.in_order()) {
    const FpEnvironment ieee;
    return run_nodes_in_order(plan, frame);
  }
  return Execution(plan, frame).run();
}

Execution::Execution(const Plan& plan, Frame& frame)
    : plan_(plan), frame_(frame), queue_(*frame.scope), own_(queue_, plan, frame) {
  if (plan.can_wait) link_.emplace(&frame.scope->token, frame.scope->waits);
  own_.enqueue();
}

int64_t Execution::run() {
  work();
  frame_.scope->token.check();
  return own_.executed();
}

void Execution::run_until(std::span<const int32_t> wanted) {
  own_.want(wanted);
  work();
  frame_.scope->token.check();
}

void Execution::wind_up() {
  queue_.want(1);
  try {
    work();
  } catch (...) {
  }
}

// Errors: the first in canonical order.
void Execution::work() {
  const bool shared = plan_.side_by_side || plan_.bodies_wait;
  queue_.work(shared ? ThreadPool::instance().num_threads() - 1 : 0, plan_.cost_ns, [this] {
    // While the caller waits for others.
    try {
      poll_interrupt();
    } catch (...) {
      own_.fail_run();
    }
  });
  drain_queues();
  if (own_.error() != nullptr) std::rethrow_exception(own_.error());
  if (drain_error_ != nullptr) std::rethrow_exception(drain_error_);
}

// The last of what the devices say comes before they are past all.
void Execution::drain_queues() {
  for (const PlanMemory& memory : plan_.memories) {
    if (!memory.used || memory.device->is_host()) continue;
    try {
      memory.device->wait();
    } catch (...) {
      if (drain_error_ == nullptr) drain_error_ = std::current_exception();
    }
  }
}

}  // namespace treenail
