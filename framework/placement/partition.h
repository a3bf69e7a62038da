// SPDX-License-Identifier: Apache-2.0
// Cutting a placed graph into what each of several tasks runs. Where an edge leads from one part to
// another stand a _Send and a _Recv, one pair for each value and part that wants it, however many
// read it there; a control edge passes a scalar. Parts that run one after the other nowhere wait
// for each other in a circle, since the whole has none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/graph.h"

namespace treenail {

// A private copy of what a run needs.
struct WholeGraph {
  const Graph& graph;
  std::span<const Output> feeds;  // Placeholders; no node where nothing needs the feed
  std::span<const Output> fetches;
  std::span<Node* const> targets;
};

// What one part runs. Numbers are those of the whole's lists.
struct Piece {
  std::unique_ptr<Graph> graph;  // nodes go by their original names
  std::vector<std::pair<size_t, Output>> feeds;
  std::vector<std::pair<size_t, Output>> fetches;
  std::vector<std::pair<size_t, Node*>> targets;
  std::vector<Node*> sends;  // targets as well

  bool empty() const { return graph->num_nodes() == 0; }
};

// `parts`: by node id, in which of the parts it runs; what has a feed's or a constant's value
// stands in each part that reads it. `names`: of the parts, as _Send and _Recv call them. Errors:
// Unimplemented for a value that cannot leave its part, naming the node. `sent_as`: float32 values
// are rounded to this on the way, which is kFloat16 or kBFloat16; kInvalid: they pass as they are.
std::vector<Piece> partition(const WholeGraph& whole, std::span<const int32_t> parts,
                             std::span<const std::string> names, DType sent_as = DType::kInvalid);

}  // namespace treenail
