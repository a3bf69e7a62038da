// SPDX-License-Identifier: Apache-2.0
// How the operands of an element-wise op lie against its result.
#pragma once

#include <span>

#include "framework/tensor/shape.h"
#include "kernels/cuda/elementwise/broadcast.h"

namespace treenail::cuda {

// Neighbouring dimensions that lie alike in all operands are one. Errors: Unimplemented where more
// than gpu::kMostDimensions are left.
template <int kOperands = gpu::kMostOperands>
gpu::BroadcastOf<kOperands> broadcast_of(const Shape& result, std::span<const Shape> operands);

}  // namespace treenail::cuda
