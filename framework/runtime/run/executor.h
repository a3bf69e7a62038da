// SPDX-License-Identifier: Apache-2.0
// Runs a plan on a frame. Dependency counts and a ready queue; cheap kernels run inline on the
// thread that readied them. In canonical order on the calling thread (kernels split their own work
// over the pool), or side by side where the plan says so. Of several errors the first in canonical
// order is reported.
#pragma once

#include <cstdint>

#include "framework/runtime/plan/plan.h"

namespace treenail {

// Feeds stand in the frame's arg slots; fetches are left in their slots. Errors: of kernels, with
// op and node before the text; Cancelled or DeadlineExceeded as the frame's token says. On return,
// normal or not, none of the plan's kernels runs. Returns the number of plan nodes executed.
int64_t execute_plan(const Plan& plan, Frame& frame);

}  // namespace treenail
