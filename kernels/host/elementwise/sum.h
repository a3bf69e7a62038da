// SPDX-License-Identifier: Apache-2.0
// Sums that kernels need besides what they are for.
#pragma once

#include <span>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {

// Of values of one dtype, as AddN adds them; lists are added element by element. No value gives an
// undefined tensor. Errors: InvalidArgument for other shapes than the first one's.
Tensor sum_of_values(const RunContext& c, std::span<const Tensor> values);

}  // namespace treenail::host
