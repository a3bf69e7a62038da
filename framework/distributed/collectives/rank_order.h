// SPDX-License-Identifier: Apache-2.0
// Reductions of values of all ranks, element by element and in the order of ranks: ((r0 + r1) + r2)
// + ... Each element depends on these values alone, so that neither arrival nor transport nor how
// values are cut or bucketed changes a bit. half and bfloat16 are reduced in float and rounded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/distributed/collectives/collective.h"

namespace treenail {

// Whether elements of the dtype can be reduced so: numbers; complex ones have no order; the mean is
// one of floating-point numbers.
bool can_reduce(DType dtype, Reduction reduction);

// out[i] for `elements` elements; `from[r]` are rank r's. `out` is none of them.
void reduce_in_rank_order(DType dtype, Reduction reduction, std::span<const std::byte* const> from,
                          std::byte* out, int64_t elements);

}  // namespace treenail
