// SPDX-License-Identifier: Apache-2.0
// Which device runs which node. With one device there is nothing to choose: only to refuse what
// asks for another.
#pragma once

#include <span>
#include <string>

#include "framework/graph/graph.h"

namespace treenail {

// Full names of the devices of this process.
std::span<const std::string> local_devices();

// Checks that every node's device request is met by a local device; with allow_soft_placement a
// request for a device that is not there is met by the CPU. Errors: InvalidArgument naming node,
// request and the devices there are.
void place(const Graph& graph, bool allow_soft_placement);

}  // namespace treenail
