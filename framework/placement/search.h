// SPDX-License-Identifier: Apache-2.0
// The best of some placements, as simulated: each device alone, tasks greedily where they end
// first, units in turn over the devices (the white paper "TensorFlow: Large-Scale Machine Learning
// on Heterogeneous Distributed Systems", section 3.2.1). Nothing is random and nothing is measured:
// the same problem has the same answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/placement/simulation.h"

namespace treenail {

struct PlacementCandidate {
  std::string strategy;  // "single device 0", "greedy", "greedy by critical path", "round robin"
  double makespan = 0;
  bool fits = true;  // the memories
};

struct PlacementChoice {
  std::vector<int32_t> places;  // by task
  PlacementTimeline timeline;
  size_t chosen = 0;  // in `candidates`
  std::vector<PlacementCandidate> candidates;
};

// Of equally good placements the first in the order above. Of a hundred equal devices one is tried
// alone. Errors: as check_problem(); Cancelled, where the caller is interrupted. Where no placement
// fits the memories, the choice is that which exceeds them least, and its candidate does not fit.
PlacementChoice search_placement(const PlacementProblem& problem);

}  // namespace treenail
