// SPDX-License-Identifier: Apache-2.0
// Constant folding on a plan's private graph. It stands here and not with the other passes
// (graph/passes) because it runs kernels: those of the host.
#pragma once

#include <span>

#include "framework/base/function_ref.h"
#include "framework/graph/graph.h"

namespace treenail {

// Replaces values that are known already (by kernels on constant inputs, or told by a shape rule)
// with Const nodes that carry the replaced node's identity and device. `folds`: whether the device
// that a node is for gives the bits of the host's kernels; integers and truth values are folded for
// all. Results beyond 1 MiB, nodes of `keep`, stateful ops and ops that fail are left as they are;
// what the graph orders stays ordered. Replaced nodes are left without consumers (prune removes
// them). Returns how many nodes were replaced.
int fold_constants(Graph& graph, std::span<Node* const> keep, FunctionRef<bool(const Node&)> folds);

// Whether all outputs have the same bits on every device.
bool same_everywhere(const OpInstance& op);

}  // namespace treenail
