// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/companions.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace treenail {

DisjointNodes::DisjointNodes(int count) : parents_(static_cast<size_t>(count)) {
  std::iota(parents_.begin(), parents_.end(), 0);
}

int32_t DisjointNodes::find(int32_t node) {
  const auto parent = [&](int32_t of) -> int32_t& { return parents_[static_cast<size_t>(of)]; };
  while (parent(node) != node) {
    parent(node) = parent(parent(node));
    node = parent(node);
  }
  return node;
}

void DisjointNodes::join(int32_t a, int32_t b) {
  a = find(a);
  b = find(b);
  parents_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
}

bool join_colocated(const Graph& graph, DisjointNodes& sets) {
  std::unordered_map<std::string_view, int32_t> named;  // a node of each set that has a name
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node == nullptr) continue;
    for (const std::string& name : node->colocated_with())
      sets.join(id, named.try_emplace(name, id).first->second);
  }
  if (named.empty()) return false;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node == nullptr) continue;
    const auto found = named.find(node->original_name());
    if (found != named.end()) sets.join(id, found->second);
  }
  return true;
}

Companions::Companions(const Graph& graph) {
  DisjointNodes sets(graph.num_nodes());
  if (!join_colocated(graph, sets)) return;
  std::vector<std::vector<const Node*>> all(static_cast<size_t>(graph.num_nodes()));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (const Node* const node = graph.node(id))
      all[static_cast<size_t>(sets.find(id))].push_back(node);
  }
  numbers_.assign(all.size(), -1);
  for (auto& nodes : all) {
    if (nodes.size() < 2) continue;
    for (const Node* node : nodes)
      numbers_[static_cast<size_t>(node->id())] = static_cast<int32_t>(groups_.size());
    groups_.push_back(std::move(nodes));
  }
}

}  // namespace treenail
