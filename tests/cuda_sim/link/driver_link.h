// SPDX-License-Identifier: Apache-2.0
// The simulated driver that the process has loaded: what it exports for libraries beside it.
#pragma once

#include "tests/cuda_sim/exports.h"

namespace treenail::cuda_sim {

struct DriverLink {
  decltype(&cusim_enqueue) enqueue;
  decltype(&cusim_view) view;
};

// Null where there is none; the real driver is none.
const DriverLink* driver_link();

}  // namespace treenail::cuda_sim
