// SPDX-License-Identifier: Apache-2.0
// The row that index i chooses; p.rows where it chooses none, or is at fault, which the word then
// says.
#pragma once

#include "kernels/cuda/indexing/places.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class Index>
TN_DEVICE int64_t row_of(const Places& p, const Index* indices, int64_t i,
                         unsigned long long* fault) {
  const Index* const at = indices + i * p.depth;
  int64_t row = 0;
  bool good = true, skipped = false;
  TN_NO_UNROLL
  for (int k = 0; k < p.depth; ++k) {
    const auto index = static_cast<int64_t>(at[k]);
    good = good && index >= 0 && index < p.limits[k];
    skipped = (p.skips & (index < 0 ? kSkipsNegative : kSkipsBeyond)) != 0;
    row = good ? row * p.limits[k] + index : 0;
  }
  if (good) return row;
  if (!skipped) atomic_min(fault, static_cast<unsigned long long>(i));
  return p.rows;
}

}  // namespace treenail::gpu
