// SPDX-License-Identifier: Apache-2.0
// Select by element size, whatever the type; ClipByValue by the level's vectors. Kernels are
// prepared by the tile engine; Select has its own entry there because its loops go by size
// (host/select.cc).
#include "kernels/cpu/loops.h"
#include "kernels/host/select.h"
#include "kernels/host/tile_loops.h"

namespace treenail::cpu {
namespace {

// Operands that are one element: copies of it, read again for every block.
template <class T>
TN_ONE_BODY void run_select(T* y, const bool* c, const T* a, int64_t sa, const T* b, int64_t sb,
                            int64_t n) {
  T out[kBlock];
  for (; n >= kBlock; n -= kBlock, y += kBlock, c += kBlock, a += sa, b += sb) {
    TN_NO_UNROLL
    for (int64_t k = 0; k < kBlock; ++k) {
      const T p = a[k], q = b[k];
      out[k] = c[k] ? p : q;
    }
    std::memcpy(y, out, sizeof out);
  }
  for (int64_t k = 0; k < n; ++k) {
    y[k] = c[k] ? a[k] : b[k];
    TN_STAY_SCALAR;
  }
}

template <class T, unsigned kMask>
void select_loop(void* y, const void* condition, const void* a, const void* b, int64_t n,
                 const LoopParams&) {
  const auto* c = static_cast<const bool*>(condition);
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  auto* r = static_cast<T*>(y);
  if constexpr (kMask == 2) {
    run_select(r, c, BlockOfCopies<T>(a, n).element, 0, q, kBlock, n);
  } else if constexpr (kMask == 4) {
    run_select(r, c, p, kBlock, BlockOfCopies<T>(b, n).element, 0, n);
  } else if constexpr (kMask == 6) {
    run_select(r, c, BlockOfCopies<T>(a, n).element, 0, BlockOfCopies<T>(b, n).element, 0, n);
  } else {
    run_select(r, c, p, kBlock, q, kBlock, n);
  }
}

template <class T>
constexpr Loops select_loops() {
  return {{select_loop<T, 0>, nullptr, select_loop<T, 2>, nullptr, select_loop<T, 4>, nullptr,
           select_loop<T, 6>}};
}

// min(max(t, low), high); NaN stays NaN.
template <class V>
TN_INLINE V clip(V t, V low, V high) {
  t = t < low ? low : t;
  return t > high ? high : t;
}

template <class T>
TN_ONE_BODY void run_clip(T* y, const T* t, const T* low, int64_t sl, const T* high, int64_t sh,
                          int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  for (; n >= kL; n -= kL, y += kL, t += kL, low += sl, high += sh) {
    store(y, clip(load<V>(t), load<V>(low), load<V>(high)));
  }
  for (int64_t k = 0; k < n; ++k) {
    y[k] = clip(t[k], low[k], high[k]);
    TN_STAY_SCALAR;
  }
}

template <class T, unsigned kMask>
void clip_loop(void* y, const void* t, const void* low, const void* high, int64_t n,
               const LoopParams&) {
  constexpr int64_t kL = kLanes<T>;
  auto* r = static_cast<T*>(y);
  const auto* x = static_cast<const T*>(t);
  if constexpr (kMask == 6) {
    run_clip(r, x, Copies<T>(low).lane, 0, Copies<T>(high).lane, 0, n);
  } else {
    run_clip(r, x, static_cast<const T*>(low), kL, static_cast<const T*>(high), kL, n);
  }
}
template <class T>
constexpr Loops clip_loops() {
  return {{clip_loop<T, 0>, nullptr, nullptr, nullptr, nullptr, nullptr, clip_loop<T, 6>}};
}

constexpr host::TileOp kOps[] = {
    {"ClipByValue", DType::kFloat32, clip_loops<float>(), 0.08f},
    {"ClipByValue", DType::kFloat64, clip_loops<double>(), 0.15f},
    {"ClipByValue", DType::kInt32, clip_loops<int32_t>(), 0.08f},
    {"ClipByValue", DType::kInt64, clip_loops<int64_t>(), 0.15f},
};

}  // namespace

void register_selection_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
  host::add_select_kernels(registry, {select_loops<uint8_t>(), select_loops<uint16_t>(),
                                      select_loops<uint32_t>(), select_loops<uint64_t>()});
}

}  // namespace treenail::cpu
