// SPDX-License-Identifier: Apache-2.0
// Which device runs which node: what nodes ask for, state that stays where it is, and for the rest
// the first device. Only devices that are there count; names alone matter here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/placement/device_name.h"

namespace treenail {

// The devices of this process: `cpus` of them, "/job:localhost/replica:0/task:0/device:CPU:0" and
// on. They share threads and memory.
std::vector<DeviceName> local_devices(int cpus = 1);

// By node id, the number in `devices` (at least one) of the device that runs the node:
//
// - a node that names some state runs where its handle is;
// - one that asks for a device, on the first that satisfies the request;
// - a value that is made of nothing for one reader alone, where its reader is;
// - any other on the first device.
//
// Errors: InvalidArgument, naming node, request and the devices there are, for a request that no
// device satisfies, and for one that contradicts where the node's state is. With
// allow_soft_placement the first device of the same kind, or the first of all, meets such a
// request, and state comes first.
std::vector<int32_t> place(const Graph& graph, std::span<const DeviceName> devices,
                           bool allow_soft_placement);

}  // namespace treenail
