// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/run_limits.h"

namespace treenail {

void RunLimits::begin_planning() {
  if (planning_) return;
  planning_.emplace(options_.token);
  if (options_.timeout_ms > 0)
    planning_->deadline.emplace(planning_->token, options_.timeout_ms, begun_);
  // Nobody has looked since the call began.
  planning_->interrupts.emplace(options_.poll, &planning_->token, 0);
}

void RunLimits::end_planning() {
  if (!planning_) return;
  if (options_.token != nullptr) options_.token->check();  // the caller's own reason comes first
  planning_->token.check();
  planning_.reset();
}

}  // namespace treenail
