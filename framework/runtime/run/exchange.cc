// SPDX-License-Identifier: Apache-2.0
#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_exchange.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

Exchange::~Exchange() = default;

Exchange& exchange_of(const RunContext& c) {
  Exchange* const exchange = c.frame_ == nullptr ? nullptr : c.frame_->scope->exchange;
  if (exchange == nullptr)
    throw failed_precondition("passes values between tasks, and this run has one task");
  return *exchange;
}

}  // namespace treenail
