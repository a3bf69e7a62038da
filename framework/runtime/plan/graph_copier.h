// SPDX-License-Identifier: Apache-2.0
// What a plan needs of a graph, copied into one of its own, in the order in which it was created,
// so that passes walk over what lies side by side. The copy is cut at the feeds. In place of a call
// of a function stand the function's own nodes where nothing tells the difference but the time it
// takes: so fusion, folding and shapes go across the call's border.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/runtime/plan/function_facts.h"

namespace treenail {

class GraphCopier {
 public:
  // Of one copy: what it may put in place of calls.
  struct Calls {
    const FunctionFacts* facts = nullptr;  // null: none
    int most_nodes = 50'000;               // that are added so
  };
  // `feed`: what stands in `target` for feed i; asked when it is needed.
  GraphCopier(const Graph& source, std::span<const Output> feeds, Graph& target, Calls& calls,
              FunctionRef<Output(size_t)> feed);

  void need(const Output& value);
  void need(const Node& node);
  // After need() has told of all that is.
  void copy_needed();
  // The copy's value for a value of the source, or node for a node, that need() was told of.
  Output copy_of(const Output& value);
  Node* copy_of(const Node& node);

 private:
  // The call that a body's nodes stand in place of.
  struct Call {
    const Node& node;
    std::string path;  // "call/function/"
    std::span<const Output> inputs;
    std::span<Node* const> control_inputs;
    int depth;
  };
  GraphCopier(const Graph& source, std::span<const Output> feeds, Graph& target, Calls& calls,
              FunctionRef<Output(size_t)> feed, const Call& call);

  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  static uint64_t key(const Output& value) {
    return (static_cast<uint64_t>(value.node->id()) << 32) | static_cast<uint32_t>(value.index);
  }
  Output behind(Output value) const;
  void need_inputs(const Node& node);
  void copy(const Node& root);
  Node* copy_ready(const Node& node);
  Node* add(const Node& node, std::span<const Output> inputs, std::vector<Node*> control_inputs);
  Node* fed_placeholder(const Node& node);
  const Function* body_for(const Node& node, std::span<const Output> inputs) const;
  Node* copy_body(const Node& node, const Function& function, std::span<const Output> inputs,
                  std::span<Node* const> control_inputs);

  const Graph& source_;
  Graph& target_;
  Calls& calls_;
  const FunctionRef<Output(size_t)> feed_;
  const Call* const call_ = nullptr;  // null: the source is not a function's body
  std::vector<bool> needed_;          // by id of the source
  std::vector<Node*> copies_;         // likewise; of a call the node that ends it
  std::vector<const Node*> stack_;
  std::unordered_map<uint64_t, size_t> fed_;
  std::unordered_map<const Node*, std::vector<Output>> results_;  // of calls that are no more
};

}  // namespace treenail
