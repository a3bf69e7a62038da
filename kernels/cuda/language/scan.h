// SPDX-License-Identifier: Apache-2.0
// Running combinations over threads of a block. The order hangs on the number of lanes alone.
#pragma once

#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
struct BlockScan {
  T before;  // of the threads before this one
  T all;
};

// Over groups of `lanes` neighbours, a power of two. `part`: shared, two elements for each thread
// of the block, all of whose threads call. combine(a, b): `a` comes first.
template <class T, class Combine>
TN_DEVICE BlockScan<T> scan_group(T* part, int lanes, T identity, T value, Combine combine) {
  const int at = thread(), lane = at & (lanes - 1), begin = at - lane;
  T* from = part;
  T* to = part + threads();
  from[at] = value;
  for (int step = 1; step < lanes; step *= 2) {
    sync();
    to[at] = lane < step ? from[at] : combine(from[at - step], from[at]);
    T* const other = from;
    from = to;
    to = other;
  }
  sync();
  const BlockScan<T> result = {lane == 0 ? identity : from[at - 1], from[begin + lanes - 1]};
  sync();  // before the next use of `part`
  return result;
}

// Over all threads of the block, which are a power of two.
template <class T>
TN_DEVICE BlockScan<T> sum_before(T* part, T value) {
  return scan_group(part, threads(), T(0), value, [](T a, T b) { return static_cast<T>(a + b); });
}

}  // namespace treenail::gpu
