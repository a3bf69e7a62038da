// SPDX-License-Identifier: Apache-2.0
// One deliberate misuse for each detector: a detector that finds nothing may just be broken.
#pragma once

#include "tests/simulated/device.h"

namespace treenail::simulated {

// `what`: as for sim_misuse() (exports.h). `peer`: another device, for the misuse that needs two.
void commit_misuse(SimulatedDevice& device, SimulatedDevice& peer, int what);

}  // namespace treenail::simulated
