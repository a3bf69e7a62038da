// SPDX-License-Identifier: Apache-2.0
// Nodes are created after what they read, so that sorting them by age is nearly always enough.
#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/graph/graph.h"

namespace treenail {
namespace {

// A node's place among those that are free.
struct Ranked {
  std::tuple<bool, int, int> rank;
  Node* node;
  friend bool operator<(const Ranked& a, const Ranked& b) { return a.rank < b.rank; }
  friend bool operator>(const Ranked& a, const Ranked& b) { return b < a; }
};

Ranked ranked(Node* node, const std::vector<bool>& urgent) {
  const bool waits = urgent.empty() || !urgent[static_cast<size_t>(node->id())];
  return {{waits, node->original_id(), node->id()}, node};
}

// Nodes are nearly in order as they come: those that are not are taken out and merged in.
void sort(std::vector<Ranked>& nodes) {
  std::vector<Ranked> late;
  auto end = nodes.begin();
  for (const Ranked& each : nodes) {
    if (end != nodes.begin() && each < *(end - 1)) {
      late.push_back(each);
    } else {
      *end++ = each;
    }
  }
  std::sort(late.begin(), late.end());
  std::copy(late.begin(), late.end(), end);
  std::inplace_merge(nodes.begin(), end, nodes.end());
}

// Whether each comes after what it reads and waits for.
bool rank_is_order(std::span<const Ranked> nodes, const Graph& graph) {
  std::vector<bool> done(static_cast<size_t>(graph.num_nodes()));
  const auto is_done = [&](const Node* node) { return done[static_cast<size_t>(node->id())]; };
  for (const auto& [rank, node] : nodes) {
    poll_interrupt();
    const auto ready = [&](const Output& input) { return is_done(input.node); };
    if (!std::ranges::all_of(node->inputs(), ready) ||
        !std::ranges::all_of(node->control_inputs(), is_done))
      return false;
    done[static_cast<size_t>(node->id())] = true;
  }
  return true;
}

}  // namespace

std::vector<Node*> topological_order(const Graph& graph, const std::vector<bool>& urgent) {
  std::vector<Ranked> nodes;
  nodes.reserve(static_cast<size_t>(graph.num_nodes()));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (Node* const node = graph.node(id)) nodes.push_back(ranked(node, urgent));
  }
  std::vector<Node*> order;
  order.reserve(nodes.size());
  sort(nodes);
  if (rank_is_order(nodes, graph)) {
    for (const Ranked& each : nodes) order.push_back(each.node);
    return order;
  }
  std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>> ready;
  std::vector<size_t> pending(static_cast<size_t>(graph.num_nodes()));
  for (const Ranked& each : nodes) {
    size_t& missing = pending[static_cast<size_t>(each.node->id())];
    missing = each.node->inputs().size() + each.node->control_inputs().size();
    if (missing == 0) ready.push(each);
  }
  while (!ready.empty()) {
    Node* node = ready.top().node;
    ready.pop();
    poll_interrupt();
    order.push_back(node);
    for (Node* consumer : node->consumers()) {
      if (--pending[static_cast<size_t>(consumer->id())] == 0) ready.push(ranked(consumer, urgent));
    }
  }
  if (order.size() == nodes.size()) return order;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node != nullptr && pending[static_cast<size_t>(id)] != 0) {
      throw invalid_argument(error_prefix(node->type(), node->name()),
                             "lies on or behind a cycle of the graph");
    }
  }
  return order;
}

}  // namespace treenail
