// SPDX-License-Identifier: Apache-2.0
// How a plan is run: node after node with every kernel split over all threads, or independent nodes
// side by side with each kernel whole on its thread. Results are the same bits either way; only
// time differs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treenail {

struct Plan;
struct PlanNode;

// By simulation with the kernels' cost estimates on `threads` threads.
bool faster_side_by_side(std::span<const PlanNode> nodes, int threads);

// A loop's body, planned for arguments that come one by one (Args::kIteration), between its
// iterations.
struct IterationLinks {
  std::vector<int32_t> from;  // by argument: the fetch that it is next; -1: it stays the same
  std::vector<bool> decide;   // by argument: whether an iteration begins when it is there
};
// Whether at most `most` iterations at a time finish sooner than one after the other.
bool faster_overlapping(const Plan& plan, const IterationLinks& links, int threads, int most);
// The same if nothing held an iteration up, which a plan for whatever arguments can tell.
bool may_be_faster_overlapping(const Plan& plan, int threads);

}  // namespace treenail
