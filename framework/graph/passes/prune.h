// SPDX-License-Identifier: Apache-2.0
// Dead node removal on a plan's private graph.
#pragma once

#include <span>

#include "framework/graph/graph.h"

namespace treenail {

// Removes every node that none of `keep` needs, through values or control edges. Returns how many
// were removed.
int prune(Graph& graph, std::span<Node* const> keep);

}  // namespace treenail
