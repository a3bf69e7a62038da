// SPDX-License-Identifier: Apache-2.0
// Which nodes must run on one device, because they say so (Node::colocated_with): a node, those
// that name it, and those that name the same as these do, whether it is there or not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/graph/graph.h"

namespace treenail {

// Sets of nodes that grow together, by node id.
class DisjointNodes {
 public:
  explicit DisjointNodes(int count);
  // The lowest of the set.
  int32_t find(int32_t node);
  void join(int32_t a, int32_t b);

 private:
  std::vector<int32_t> parents_;
};

// Joins the nodes that must run beside one another. False where none must.
bool join_colocated(const Graph& graph, DisjointNodes& sets);

class Companions {
 public:
  explicit Companions(const Graph& graph);
  // Whether any node has one.
  bool any() const { return !groups_.empty(); }
  // Each of at least two nodes, in their order; groups in the order of their first nodes.
  const std::vector<std::vector<const Node*>>& groups() const { return groups_; }
  // The number of the node's group; -1: it is alone.
  int32_t group_of(const Node& node) const {
    return groups_.empty() ? -1 : numbers_[static_cast<size_t>(node.id())];
  }

 private:
  std::vector<std::vector<const Node*>> groups_;
  std::vector<int32_t> numbers_;  // by node id
};

}  // namespace treenail
