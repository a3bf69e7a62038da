// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/passes/prune.h"

#include <vector>

#include "framework/base/interrupt.h"

namespace treenail {

int prune(Graph& graph, std::span<Node* const> keep) {
  std::vector<bool> needed(static_cast<size_t>(graph.num_nodes()));
  std::vector<Node*> stack;
  const auto need = [&](Node* node) {
    const auto id = static_cast<size_t>(node->id());
    if (needed[id]) return;
    needed[id] = true;
    stack.push_back(node);
  };
  for (Node* node : keep) need(node);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) need(input.node);
    for (Node* before : node->control_inputs()) need(before);
  }
  int removed = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    poll_interrupt();
    removed += graph.node(id) != nullptr && !needed[static_cast<size_t>(id)];
  }
  if (removed > 0) graph.remove_unless(needed);
  return removed;
}

}  // namespace treenail
