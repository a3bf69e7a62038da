// SPDX-License-Identifier: Apache-2.0
// The reduction engine: any axes, any of the associative loops below, in a tree whose shape depends
// on the tensor's shape alone. Axes are merged until kept and reduced ones alternate; then each
// pass reduces the innermost reduced axis, blocks of it in parallel, until one element is left of
// it. Every pass is one of two cases: contiguous rows to one value each, or columns over rows. The
// loops: reduce_loops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "kernels/host/elementwise/tile_loops.h"
#include "kernels/host/reductions/reduce_loops.h"

namespace treenail::host {

struct ReducePlan {
  std::string_view first;   // what the elements go through
  std::string_view then;    // what combines partial results
  DType stored;             // of input and output
  DType compute;            // of the loops
  LoopFn finish = nullptr;  // applied to the results, in the compute type
  LoopParams finish_params;
};

// The kernel that reduces the axes flagged in `reduced` of a tensor of this shape.
std::unique_ptr<Kernel> make_reduce_kernel(const ReducePlan& plan, const Shape& shape,
                                           const std::vector<bool>& reduced);

}  // namespace treenail::host
