// SPDX-License-Identifier: Apache-2.0
// The kernels of the simulated devices: each is the host's of the same op, run late and on memory
// that the host cannot touch. Ops with no device kernel by nature are left out.
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::simulated {

std::vector<KernelRegistration> make_kernels();

// "Op: why it has no kernel here", a line each; of all that the host has.
std::string left_out();

}  // namespace treenail::simulated
