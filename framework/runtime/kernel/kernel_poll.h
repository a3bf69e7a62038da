// SPDX-License-Identifier: Apache-2.0
// For kernels whose one chunk may take long: what ends a run early is asked for inside the loop.
#pragma once

#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// Raises what ends the run: cancellation, a deadline, Ctrl-C. Some nanoseconds.
void poll(const RunContext& c);

}  // namespace treenail
