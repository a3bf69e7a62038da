// SPDX-License-Identifier: Apache-2.0
// What threads of a block compute together: groups of `lanes` neighbours, a power of two. The order
// is that of the lanes whatever the width of a warp is, so that every device gives the same bits.
#pragma once

#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

TN_DEVICE int lane_of(int lanes) { return thread() & (lanes - 1); }
TN_DEVICE int group_of(int lanes) { return thread() / lanes; }

// What all lanes' values combine to, for each of them. `part`: shared, an element for each thread
// of the block, all of whose threads call.
template <class T, class Combine>
TN_DEVICE T over_group(T* part, T value, int lanes, Combine combine) {
  const int at = thread();
  const int lane = lane_of(lanes);
  part[at] = value;
  for (int half = lanes / 2; half > 0; half /= 2) {
    sync();
    if (lane < half) part[at] = combine(part[at], part[at + half]);
  }
  sync();
  const T all = part[at - lane];
  sync();  // before the next use of `part`
  return all;
}

}  // namespace treenail::gpu
