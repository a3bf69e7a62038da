// SPDX-License-Identifier: Apache-2.0
// What each node of one run did: when, on which thread, with how much memory and arithmetic. A run
// that is asked for it has a NodeTrace in its frame; the executor fills it, and without one looks
// at a null pointer.
#pragma once

#include <vector>

#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/node_stats.h"

namespace treenail {

// Of what ran, in the order in which it began.
std::vector<NodeStats> node_stats(const Plan& plan, const NodeTrace& trace);

}  // namespace treenail
