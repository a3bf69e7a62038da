// SPDX-License-Identifier: Apache-2.0
// Where in a run something is: the calls around a node, from the run's plan inwards. Of bodies that
// ran on the thread that called them the kernels that called tell themselves.
#pragma once

#include "framework/base/error.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

// `[While node "w"] iteration 17: [MatMul node "product"] text`, then where nodes and calls were
// created. Of many calls within calls the first, how many there are, and the last.
Error located_in_run(const Node& node, const Frame& frame, const Error& error);
// The same of an error that names its own node already: one of another task, which the calls around
// `frame` have led to.
Error located_in_calls(const Frame& frame, const Error& error);

}  // namespace treenail
