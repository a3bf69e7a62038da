// SPDX-License-Identifier: Apache-2.0
// Placing task after task where it is predicted to end first.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/placement/problem.h"

namespace treenail {

// Which task is placed next.
enum class GreedyOrder : uint8_t {
  kTasks,         // their own order
  kCriticalPath,  // that behind which most remains to be done, by mean costs (Topcuoglu, Hariri and
                  // Wu, "Performance-effective and low-complexity task scheduling", 2002)
};

// By task, the number of its device. A unit goes where its first task goes, for which what else is
// in the unit counts, too; tasks that float, and units of such, go to who reads them first. Where
// devices are equally good that is taken on which less waits that can run nowhere else, then the
// first. State and what a task hands on fit the memory that
// is left, where that is possible anywhere.
std::vector<int32_t> place_greedily(const PlacementProblem& problem, GreedyOrder order);

}  // namespace treenail
