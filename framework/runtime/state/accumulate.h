// SPDX-License-Identifier: Apache-2.0
// Sums and means of arrays of numbers, for state that gathers them. Integers wrap around; halves
// are rounded after each addition. Nothing here is cancelled or interrupted on the way: what has
// begun ends.
#pragma once

#include <cstdint>

#include "framework/tensor/dtype.h"

namespace treenail {

// to[i] += from[i].
void add_elements(DType dtype, void* to, const void* from, int64_t n);
// to[i] /= divisor (> 0); integers towards zero.
void divide_elements(DType dtype, void* to, int64_t n, int64_t divisor);

}  // namespace treenail
