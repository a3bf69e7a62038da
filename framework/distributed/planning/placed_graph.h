// SPDX-License-Identifier: Apache-2.0
// A private graph whose nodes have places on the devices of several tasks, and what is known there
// of the state behind its handles. A handle does not leave its task; what works on it is run there,
// and makes it anew: so it is enough to know which node makes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/plan/function_facts.h"

namespace treenail {

struct StateSource {
  const Node* maker = nullptr;  // takes no inputs; null: it is not known
  int32_t place = -1;           // the number of the maker's device
  int32_t part = -1;            // and of its task
};

struct PlacedGraph {
  Graph& graph;
  const FunctionFacts& facts;
  std::vector<int32_t> places;  // by node id, the number of the device
  std::vector<int32_t> parts;   // by node id, the number of the task
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  std::unordered_map<const Node*, StateSource> arguments;  // of a body, those that are handles

  int32_t part_of(const Node& node) const { return parts[static_cast<size_t>(node.id())]; }
  // Of a node that was added.
  void set_part(const Node& node, int32_t place, int32_t part);
  // What a handle stands for, through views and loops that hand it on.
  StateSource source_of(Output value) const;
  // Stateful nodes of which all is asked for, whoever reads their outputs.
  std::unordered_set<const Node*> awaited() const;
  // Whether a plan computes the output: it is read, or fetched, or the node awaited.
  bool is_wanted(const Output& output, const std::unordered_set<const Node*>& awaited) const;
};

// The first of the inputs that a node hands to the functions it calls.
int first_argument(const OpInstance& op);

// Accesses to one state take the canonical order, as in a plan of one task (variable_order.h); this
// adds the edges that no task can see by itself: in a body all, which may come to stand in several
// pieces, else (`whole`) those of nodes that are not where the state is.
void order_state_accesses(PlacedGraph& placed, const std::unordered_set<const Node*>& awaited,
                          bool whole);

}  // namespace treenail
