// SPDX-License-Identifier: Apache-2.0
// Cancels a token when its time is over. One thread for the process, started at the first use.
#pragma once

#include <chrono>
#include <cstdint>

#include "framework/base/cancellation.h"

namespace treenail {

// For the scope's life: `timeout_ms` (> 0) after `begun` the token is cancelled with
// DeadlineExceeded.
class DeadlineScope {
 public:
  using Clock = std::chrono::steady_clock;
  DeadlineScope(CancellationToken& token, int64_t timeout_ms,
                Clock::time_point begun = Clock::now());
  ~DeadlineScope();  // afterwards the token is not touched
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;

 private:
  uint64_t id_;
};

}  // namespace treenail
