// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_poll.h"

#include "framework/base/interrupt.h"

namespace treenail {

void poll(const RunContext& c) {
  if (c.token() != nullptr) c.token()->check();
  poll_interrupt();
}

}  // namespace treenail
