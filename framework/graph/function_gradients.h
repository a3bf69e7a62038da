// SPDX-License-Identifier: Apache-2.0
// Gradients of nodes that call functions: calls and branches. The node comes to give what the
// backward part reads as further outputs, and a node like it calls the backward parts
// (linearise.h).
#pragma once

#include <span>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/op/gradient.h"

namespace treenail {

bool calls_functions(const OpInstance& op);

// One gradient per input where `needed`. The node and the emitter are of one graph, whose functions
// are those of `library`; the caller holds the mutexes of both. Errors: Unimplemented (a loop, a
// value between the parts that is neither number nor bool nor string), as add_gradients.
void function_gradients(Node& node, Graph& library, GraphEmitter& emitter,
                        std::span<const Gradient> output_gradients, std::span<const bool> needed,
                        std::span<Gradient> result);

}  // namespace treenail
