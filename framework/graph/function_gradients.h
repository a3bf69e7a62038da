// SPDX-License-Identifier: Apache-2.0
// Gradients of nodes that call functions: calls and branches. The node comes to give what the
// backward part reads as further outputs, and a node like it calls the backward parts
// (linearise.h).
#pragma once

#include <span>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/graph/linearise.h"
#include "framework/op/gradient.h"

namespace treenail {

// One gradient per input where `needed`. The node and the emitter are of one graph; the caller
// holds its mutex and the library's. Errors: Unimplemented (a value between the parts that is
// neither number nor bool nor string), as add_gradients.
void function_gradients(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                        std::span<const Gradient> output_gradients, std::span<const bool> needed,
                        std::span<Gradient> result);

}  // namespace treenail
