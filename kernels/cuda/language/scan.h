// SPDX-License-Identifier: Apache-2.0
// Running combinations over the threads of a block. The order hangs on the number of threads alone.
#pragma once

#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
struct BlockScan {
  T before;  // of the threads before this one
  T all;
};

// `part`: shared, two elements for each thread of the block, all of whose threads call. combine(a,
// b): `a` comes first.
template <class T, class Combine>
TN_DEVICE BlockScan<T> scan_block(T* part, T identity, T value, Combine combine) {
  const int at = thread(), n = threads();
  T* from = part;
  T* to = part + n;
  from[at] = value;
  for (int step = 1; step < n; step *= 2) {
    sync();
    to[at] = at < step ? from[at] : combine(from[at - step], from[at]);
    T* const other = from;
    from = to;
    to = other;
  }
  sync();
  const BlockScan<T> result = {at == 0 ? identity : from[at - 1], from[n - 1]};
  sync();  // before the next use of `part`
  return result;
}

template <class T>
TN_DEVICE BlockScan<T> sum_before(T* part, T value) {
  return scan_block(part, T(0), value, [](T a, T b) { return static_cast<T>(a + b); });
}

}  // namespace treenail::gpu
