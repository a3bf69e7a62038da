// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/dependents.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/import.h"

namespace treenail {
namespace {

// Nodes that take the value, or what depends on it.
std::unordered_set<const Node*> nodes_behind(const Output& value) {
  std::unordered_set<const Node*> found;
  std::vector<const Node*> stack;
  const auto visit = [&](const Node* node) {
    if (found.insert(node).second) stack.push_back(node);
  };
  for (const Node* reader : value.node->consumers()) {
    if (std::ranges::find(reader->inputs(), value) != reader->inputs().end()) visit(reader);
  }
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    for (const Node* reader : node->consumers()) visit(reader);
  }
  return found;
}

}  // namespace

Dependents::Dependents(Output value, std::span<const Output> results)
    : value_(value), results_(results.begin(), results.end()) {
  const std::unordered_set<const Node*> behind = nodes_behind(value);
  std::set<std::pair<int, const Node*>> needed;  // by place in the graph
  std::vector<const Node*> stack;
  const auto need = [&](const Output& each) {
    if (each == value_) return;
    if (!behind.contains(each.node)) {
      if (std::ranges::find(read_, each) == read_.end()) read_.push_back(each);
    } else if (needed.emplace(each.node->id(), each.node).second) {
      stack.push_back(each.node);
    }
  };
  for (const Output& result : results_) need(result);
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) need(input);
  }
  for (const Node* node : topological_order(value.node->graph())) {
    if (needed.contains({node->id(), node})) nodes_.push_back(node);
  }
}

std::vector<Output> Dependents::copied_to(Graph& graph, Output value,
                                          std::span<const Output> read) const {
  std::map<std::pair<const Node*, int>, Output> known{{{value_.node, value_.index}, value}};
  for (size_t i = 0; i < read_.size(); ++i) known[{read_[i].node, read_[i].index}] = read[i];
  std::map<const Node*, Node*> copies;
  for (const Node* node : nodes_) {
    std::vector<Output> inputs;
    for (const Output& input : node->inputs())
      inputs.push_back(known.at({input.node, input.index}));
    std::vector<Node*> before;  // what else is waited for is done before what is handed over
    for (const Node* each : node->control_inputs()) {
      if (const auto at = copies.find(each); at != copies.end()) before.push_back(at->second);
    }
    Node& copy = import_node(graph, *node, node->name(), inputs, before);
    copies.emplace(node, &copy);
    for (int i = 0; i < node->num_outputs(); ++i) known[{node, i}] = {&copy, i};
  }
  std::vector<Output> results;
  for (const Output& result : results_) results.push_back(known.at({result.node, result.index}));
  return results;
}

}  // namespace treenail
