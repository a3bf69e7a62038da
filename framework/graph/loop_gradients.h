// SPDX-License-Identifier: Apache-2.0
// The gradient of a While: it comes to count its iterations and to keep lists of what the backward
// part of its body reads in each, and a loop runs the backward part over them from the last to the
// first.
#pragma once

#include <span>

#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/graph/linearise.h"
#include "framework/op/gradient.h"

namespace treenail {

// As function_gradients(), of a While. False where the node has grown meanwhile, while a rule of
// the program's was called: then nothing is done.
bool loop_gradients(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                    std::span<const Gradient> output_gradients, std::span<const bool> needed,
                    std::span<Gradient> result);

}  // namespace treenail
