// SPDX-License-Identifier: Apache-2.0
// The kernels that TN_KERNEL defined in this library.
#pragma once

#include <string_view>

#include "tests/cuda_sim/language.h"

namespace treenail::cuda_sim {

const KernelEntry* find_kernel(std::string_view name);  // null: none

}  // namespace treenail::cuda_sim
