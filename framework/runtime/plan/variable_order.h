// SPDX-License-Identifier: Apache-2.0
// Accesses to one variable that the graph leaves unordered take the canonical topological order: a
// read after a write waits for it, a write waits for earlier reads and for all that consumes what
// they gave, so that it can update in place.
#pragma once

#include <unordered_map>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class FunctionCaller;

// What the node does with the state behind its input i; where it calls functions, what their bodies
// do. `functions`: null in a graph without any.
Access access_of(const Node& node, int i, const FunctionCaller* functions);

// The state behind a resource value, followed through views; null when it is not known when the
// plan is made.
const Resource* resource_behind(Output value,
                                const std::unordered_map<const Node*, Tensor>& handles);

// Updates that alone hold a computed value, a gradient as a rule, by node id: they should run as
// soon as they can, so that its memory is free again and its bytes are still near.
std::vector<bool> early_updates(const Graph& graph,
                                const std::unordered_map<const Node*, Tensor>& handles,
                                const FunctionCaller* functions = nullptr);

// Adds the control edges. All lead forward in the canonical order, so no cycle arises.
void order_variable_accesses(Graph& graph, const std::unordered_map<const Node*, Tensor>& handles,
                             const FunctionCaller* functions = nullptr);

}  // namespace treenail
