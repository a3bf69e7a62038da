// SPDX-License-Identifier: Apache-2.0
// Which device runs which node: what nodes ask for, state that stays where it is, and for the rest
// the first device. Only devices that are there count, and what they have kernels for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/device/device.h"
#include "framework/graph/graph.h"

namespace treenail {

// Whether devices of a kind have a kernel for the op with its dtypes.
using HasKernel = FunctionRef<bool(const OpInstance& op, const std::string& kind)>;

// Where the state behind a node lives that gives a handle of it from elsewhere: an argument of a
// function. Null: on the host.
using HomeOf = FunctionRef<Device*(const Node& node)>;

// By node id, the number in `devices` (at least one, a CPU first) of the device that runs the node:
//
// - a node that names some state runs where its handle is, and a handle that is given from
//   elsewhere is where its state lives: a function goes there whatever it asks for;
// - one that calls functions only hands values on: on the first device, whatever it asks for, since
//   what it calls has requests of its own;
// - one that asks for a device, on the first that satisfies the request;
// - a value that is made of nothing for one reader alone, where its reader is;
// - any other on the first device.
//
// Errors: InvalidArgument, naming node, request and the devices there are, for a request that no
// device satisfies, for one that contradicts where the node's state is, and for a device whose kind
// has no kernel for the node. With allow_soft_placement the first device of the same kind that has
// a kernel, or the first of all, meets such a request, and state comes first.
std::vector<int32_t> place(const Graph& graph, std::span<Device* const> devices,
                           bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of);

}  // namespace treenail
