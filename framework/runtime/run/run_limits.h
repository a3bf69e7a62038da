// SPDX-License-Identifier: Apache-2.0
// What ends a run ends the making of its plan as well: timeout, cancellation, signals. Once the
// plan is there, the frame's own token takes over (session.cc).
#pragma once

#include <optional>

#include "framework/base/cancellation.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/run/deadline.h"
#include "framework/runtime/run/session.h"

namespace treenail {

class RunLimits {
 public:
  explicit RunLimits(const RunOptions& options) : options_(options) {
    if (options.timeout_ms > 0) begun_ = DeadlineScope::Clock::now();
  }
  DeadlineScope::Clock::time_point begun() const { return begun_; }

  // From here to end_planning() poll_interrupt() on this thread throws what ends the run. A run
  // that finds its plan comes by neither. Errors: Cancelled.
  void begin_planning();
  // Errors: Cancelled or DeadlineExceeded, where that came meanwhile.
  void end_planning();

 private:
  struct Planning {
    explicit Planning(const CancellationToken* from) : link(from, token) {}
    CancellationToken token;
    TokenLink link;
    std::optional<DeadlineScope> deadline;
    std::optional<InterruptScope> interrupts;
  };
  const RunOptions& options_;
  DeadlineScope::Clock::time_point begun_;
  std::optional<Planning> planning_;
};

}  // namespace treenail
