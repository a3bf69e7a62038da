// SPDX-License-Identifier: Apache-2.0
// Loops that call a scalar function for each element: library functions, integer division, and all
// of u64, bool and complex. Loops by the level's vectors: kernels/cpu/elementwise/loops.h.
#pragma once

#include <cstdint>

#include "kernels/host/elementwise/tile_loops.h"

// One body per op and type, whatever constants its callers pass.
#if defined(__clang__)
#define TN_ONE_BODY __attribute__((noinline))
#else
#define TN_ONE_BODY __attribute__((noinline, noclone))
#endif

namespace treenail::host {

// `sa`, `sb`: 1, or 0 for an operand of one element.
template <class Op, class T, class R>
TN_ONE_BODY void run_each(R* y, const T* a, int64_t sa, const T* b, int64_t sb, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Op::apply(a[i * sa], b[i * sb]);
}

template <class Op, class T, class R>
void each_unary_loop(void* y, const void* a, const void*, const void*, int64_t n,
                     const LoopParams&) {
  const auto* p = static_cast<const T*>(a);
  auto* r = static_cast<R*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = Op::apply(p[i]);
}

template <class Op, class T, class R, unsigned kMask>
void each_binary_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                      const LoopParams&) {
  run_each<Op>(static_cast<R*>(y), static_cast<const T*>(a), kMask == 1 ? 0 : 1,
               static_cast<const T*>(b), kMask == 2 ? 0 : 1, n);
}

template <class Op, class T, class R = T>
constexpr Loops each_unary() {
  return {{each_unary_loop<Op, T, R>}};
}
template <class Op, class T, class R = T>
constexpr Loops each_binary() {
  return {{each_binary_loop<Op, T, R, 0>, each_binary_loop<Op, T, R, 1>,
           each_binary_loop<Op, T, R, 2>}};
}

}  // namespace treenail::host
