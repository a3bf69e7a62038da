// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce input 0 of an op to its output 0.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cuda/reductions/reduce_pass.h"

namespace treenail::cuda {

// `operation`: of reductions.h; there is one for the input's dtype. The axes flagged go.
std::unique_ptr<Kernel> make_reduction_kernel(const PrepareContext& p, std::string_view operation,
                                              gpu::Finish finish, const std::vector<bool>& reduced);

}  // namespace treenail::cuda
