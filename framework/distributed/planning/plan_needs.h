// SPDX-License-Identifier: Apache-2.0
// What the fetches and targets of a plan need over all of its pieces: which feeds, and which values
// that pieces send each other. For runs in parts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/distributed/protocol.h"

namespace treenail {

// Of one piece: what it says of its fetches, targets and sends, in this order, and where these
// belong.
struct PieceEnds {
  protocol::PieceNeeds needs;
  std::vector<size_t> feeds, fetches, targets;  // of the plan, in the piece's order
  std::vector<std::string> sends;               // their keys
};

struct EndNeeds {
  std::vector<size_t> feeds;                       // of the plan, none twice
  std::vector<std::pair<size_t, size_t>> targets;  // sends: a piece, a number of its targets
};

// For the plan's fetches and then for its targets. Errors: DataLoss where the pieces contradict
// each other.
std::vector<EndNeeds> plan_needs(const std::vector<PieceEnds>& pieces, size_t num_fetches,
                                 size_t num_targets);

}  // namespace treenail
