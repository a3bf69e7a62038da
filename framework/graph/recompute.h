// SPDX-License-Identifier: Apache-2.0
// Bodies whose backward part computes the forward part again instead of being given what that
// computed. It is given what must not or cannot be computed twice: where random numbers began in
// their stream, what was read of variables, what else has effects.
#pragma once

#include "framework/graph/graph.h"

namespace treenail {

// As import_graph() into an empty graph, but operations that fill a tensor with random numbers
// become two: one that takes the next numbers' place in the stream, going on where the one
// operation ended, and a pure one that gives them.
void import_for_recomputation(Graph& to, const Graph& from);

// Whether the node gives the same when it runs again, later, without effects. `library`: has the
// functions that it may call.
bool may_run_again(const Node& node, const Graph& library);

}  // namespace treenail
