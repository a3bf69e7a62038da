// SPDX-License-Identifier: Apache-2.0
// Which device runs which node: what nodes ask for, state that stays where it is, and for the rest
// the first device. Only devices that are there count, and what they have kernels for. They may be
// those of many tasks (placement_device.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/function_ref.h"
#include "framework/graph/graph.h"
#include "framework/placement/placement_device.h"

namespace treenail {

// Whether devices of a kind have a kernel for the op with its dtypes.
using HasKernel = FunctionRef<bool(const OpInstance& op, const std::string& kind)>;

// The number of the device on which the state behind a node lives that gives a handle of it from
// elsewhere: an argument of a function. kNoHome: it is such state on the first device's host, or
// none.
inline constexpr int32_t kNoHome = -1;
using HomeOf = FunctionRef<int32_t(const Node& node)>;
// What HomeOf raises for state on what is no device of the session.
Error state_is_elsewhere(const Node& node, const DeviceName& home);

// By node id, the number in `devices` (at least one, a CPU first) of the device that runs the node:
//
// - a node that names some state runs where its handle is, and a handle that is given from
//   elsewhere is where its state lives: a function goes there whatever it asks for;
// - one that calls functions only hands values on: on the first CPU of the task that it asks for,
//   else on the first device, since what it calls has requests of its own;
// - one that asks for a device, on the first that satisfies the request;
// - those that must run beside one another (companions.h), on the first device that satisfies the
//   requests of all, or where the state is that one of them works on;
// - a value that is made of nothing for one reader alone, where its reader is;
// - any other on the first device.
//
// Errors: InvalidArgument, naming node, request and the devices there are, for a request that no
// device satisfies, for one that contradicts where the node's state is, and for a device whose kind
// has no kernel for the node; naming two nodes, for colocated ones whose requests or whose state
// contradict one another, whatever is allowed. With allow_soft_placement the first device of the
// same kind that has a kernel, or the first CPU of the task, or the first of all, meets such a
// request, and state comes first.
std::vector<int32_t> place(const Graph& graph, std::span<const PlacementDevice> devices,
                           bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of);

}  // namespace treenail
