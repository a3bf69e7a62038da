// SPDX-License-Identifier: Apache-2.0
// Where values and order pass from one device to another, as nodes of a plan's private graph. A
// value crosses once for each memory that wants it (_Copy), never once for each consumer; between
// CPUs nothing crosses. Who waits by a control edge for a node of a device with a queue waits until
// the queue is past it (_Wait); on that device itself the order of the queue is enough.
#pragma once

#include "framework/runtime/plan/topology.h"

namespace treenail {

// `topology` has its graph, devices and places, and gets places of what is added.
void insert_copies(Topology& topology);
void insert_waits(Topology& topology);

}  // namespace treenail
