// SPDX-License-Identifier: Apache-2.0
// The counter behind a stateful random op: which Philox blocks its next execution takes. Kept in
// the resource manager under the original node's name, so that passes, partition and a second plan
// of the same node go on where the last run ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "framework/runtime/kernel/kernel.h"

namespace treenail {

class SessionRandomCounter final : public RandomCounter {
 public:
  uint64_t reserve(uint64_t blocks) override {
    return next_.fetch_add(blocks, std::memory_order_relaxed);
  }
  void restart() { next_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace treenail
