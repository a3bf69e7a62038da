// SPDX-License-Identifier: Apache-2.0
// Which row of the list (kernel_list_host.h) an op is computed by.
#pragma once

#include "framework/op/op_def.h"
#include "kernels/cuda/elementwise/kernel_list_host.h"

namespace treenail::cuda {

// By its name and the type of its first input. Errors: Internal where there is none.
const ElementwiseKernel& kernel_for(const OpInstance& op);
// The attribute that its definition takes as a number: 1 for a true one; 0 where it takes none.
double value_of(const OpInstance& op);

}  // namespace treenail::cuda
