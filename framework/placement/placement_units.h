// SPDX-License-Identifier: Apache-2.0
// Which nodes move as one, and where they may go: a variable with all that works on it and so with
// the slots of its optimizer, and companions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/placement/placer.h"

namespace treenail {

struct PlacementUnits {
  enum class Bound : uint8_t {
    kFree,     // to any device with kernels for all, of which there are several
    kAsked,    // one of them asks for a device, or for some
    kState,    // what one works on is given from elsewhere
    kHandsOn,  // it hands values on between functions or in and out of the run
    kKernel,   // one device alone has kernels for all
  };
  struct Unit {
    std::vector<int32_t> devices;  // rising; never none
    Bound bound = Bound::kFree;
  };
  std::vector<int32_t> unit_of;  // by node id
  std::vector<Unit> units;
};

// `places`: what place() says of the same arguments. Where no device suits all that belong together
// (state of one operation on two CPUs of a task) each stays where that has it.
PlacementUnits placement_units(const Graph& graph, std::span<const PlacementDevice> devices,
                               std::span<const int32_t> places, HasKernel has_kernel,
                               HomeOf home_of);

}  // namespace treenail
