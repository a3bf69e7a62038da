// SPDX-License-Identifier: Apache-2.0
// What passes do to private copies of a graph, linear in the edges concerned. The invariant of
// graph.cc holds after each call.
#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/graph.h"

namespace treenail {

void Graph::replace_uses(Output old_value, Output new_value) {
  // An edge of a consumer is as good as another: each entry stands for one that goes or stays.
  const auto moved = [&](Node* consumer) {
    const auto use = std::find(consumer->inputs_.begin(), consumer->inputs_.end(), old_value);
    if (use == consumer->inputs_.end()) return false;
    *use = new_value;
    return true;
  };
  auto& consumers = old_value.node->consumers_;
  const auto gone = std::stable_partition(consumers.begin(), consumers.end(),
                                          [&](Node* consumer) { return !moved(consumer); });
  const std::vector<Node*> uses(gone, consumers.end());
  consumers.resize(consumers.size() - uses.size());
  for (Node* consumer : uses) new_value.node->consumers_.push_back(consumer);
  ++version_;
}

void Graph::move_control_uses(Node& from, Node& to) {
  const auto moved = [&](Node* consumer) {
    const auto use =
        std::find(consumer->control_inputs_.begin(), consumer->control_inputs_.end(), &from);
    if (use == consumer->control_inputs_.end()) return false;
    std::copy(use + 1, consumer->control_inputs_.end(), use);
    consumer->control_inputs_.resize(consumer->control_inputs_.size() - 1);
    return true;
  };
  const auto gone = std::stable_partition(from.consumers_.begin(), from.consumers_.end(),
                                          [&](Node* consumer) { return !moved(consumer); });
  const std::vector<Node*> uses(gone, from.consumers_.end());
  from.consumers_.resize(from.consumers_.size() - uses.size());
  for (Node* consumer : uses) {
    if (consumer != &to) add_control_edge_unchecked(*consumer, to);
  }
  ++version_;
}

void Graph::merge(std::span<Node* const> into) {
  const auto twin = [&](const Node& node) { return into[static_cast<size_t>(node.id_)]; };
  for (Node* const node : nodes_) {
    if (node == nullptr || twin(*node) != nullptr) continue;
    for (Output& input : node->inputs_) {
      if (Node* const other = twin(*input.node)) input.node = other;
    }
    SmallVector<Node*, 1> before;
    for (Node* each : node->control_inputs_) {
      Node* const left = twin(*each) == nullptr ? each : twin(*each);
      if (left != node && std::find(before.begin(), before.end(), left) == before.end())
        before.push_back(left);
    }
    node->control_inputs_ = std::move(before);
  }
  std::vector<bool> stay(nodes_.size());
  for (size_t id = 0; id < nodes_.size(); ++id) stay[id] = into[id] == nullptr;
  remove_unless(stay);
}

void Graph::remove_unless(const std::vector<bool>& needed) {
  for (size_t id = 0; id < nodes_.size(); ++id) {
    Node*& node = nodes_[id];
    if (node == nullptr) continue;
    if (needed[id]) {
      node->consumers_.resize(0);
    } else {
      *node = Node();
      node = nullptr;
    }
  }
  find_consumers();
}

void Graph::rewire(FunctionRef<Output(const Node& consumer, int input)> source) {
  for (Node* const node : nodes_) {
    if (node == nullptr) continue;
    node->consumers_.resize(0);
    for (size_t i = 0; i < node->inputs_.size(); ++i)
      node->inputs_[i] = source(*node, static_cast<int>(i));
  }
  find_consumers();
}

// Anew, after edges or nodes have changed anywhere; there are none yet.
void Graph::find_consumers() {
  for (Node* const node : nodes_) {
    if (node == nullptr) continue;
    for (const Output& input : node->inputs_) input.node->consumers_.push_back(node);
    for (Node* before : node->control_inputs_) before->consumers_.push_back(node);
  }
  ++version_;
}

Node& Graph::add_copy(const Node& source, std::span<const Output> inputs,
                      std::span<Node* const> control_inputs) {
  Node node;
  node.op_ = source.op_;
  node.name_ = names_ == Names::kUnique ? unique_name(source.name_) : source.name_;
  set_original_name(node, source.original_name());
  node.original_id_ = source.original_id_;
  node.site_ = site_of(source.device(), source.colocated_with());
  node.creation_ = source.creation_;
  node.infos_ = source.infos_;
  node.inputs_.assign(inputs);
  node.control_inputs_.assign(control_inputs);
  if (!same_knowledge(source.inputs(), inputs)) infer_anew(node);
  return insert(std::move(node));
}

void Graph::set_origin(Node& node, const Node& origin) {
  set_original_name(node, origin.original_name());
  node.original_id_ = origin.original_id_;
  node.creation_ = origin.creation_;
}

void Graph::set_place(Node& node, const Node& call, const std::string& name) {
  set_original_name(node, name);
  node.original_id_ = call.original_id_;
  if (node.creation_ == nullptr) node.creation_ = call.creation_;
}

}  // namespace treenail
