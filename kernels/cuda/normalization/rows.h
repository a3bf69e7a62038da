// SPDX-License-Identifier: Apache-2.0
// A group of lanes for each row.
#pragma once

#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/language/group.h"

namespace treenail::gpu {

// Calls body(row) for each row of this thread's group; for rows beyond the last one with `rows`.
template <class F>
TN_DEVICE void for_rows(int64_t rows, int lanes, F body) {
  const int64_t groups = threads() / lanes;
  for (int64_t base = block() * groups; base < rows; base += blocks() * groups) {
    const int64_t row = base + group_of(lanes);
    body(row < rows ? row : rows);
  }
}

}  // namespace treenail::gpu
