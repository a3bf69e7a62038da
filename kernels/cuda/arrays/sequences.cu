// SPDX-License-Identifier: Apache-2.0
// Numbers that are evenly spaced, each computed from its place, so that no error builds up: reals
// in double.
#include "kernels/cuda/elementwise/kernels.h"

namespace treenail::gpu {

template <class S, class W>
TN_DEVICE S narrowed(W x) {
  if constexpr (sizeof(S) == 2) {
    return Stored<S>::narrow(static_cast<float>(x));
  } else {
    return static_cast<S>(x);
  }
}

// start + i * delta
template <class S, class W>
TN_DEVICE void range(int64_t n, W start, W delta, S* y) {
  for (int64_t i = first(); i < n; i += stride())
    y[i] = narrowed<S>(start + static_cast<W>(i) * delta);
}

// From *start to *stop, which is the last one.
template <class S>
TN_DEVICE void line(int64_t n, const S* start, const S* stop, S* y) {
  const auto from = static_cast<double>(Stored<S>::widen(*start));
  const auto to = static_cast<double>(Stored<S>::widen(*stop));
  const double step = n > 1 ? (to - from) / static_cast<double>(n - 1) : 0.0;
  for (int64_t i = first(); i < n; i += stride()) {
    const bool last = n > 1 && i == n - 1;
    y[i] = last ? *stop : narrowed<S>(from + static_cast<double>(i) * step);
  }
}

#define TN_RANGE(S, type, W) \
  TN_KERNEL(range_##type, int64_t n, W start, W delta, S* y) { range(n, start, delta, y); }
TN_RANGE(float, float32, double)
TN_RANGE(double, float64, double)
TN_RANGE(Float16, float16, double)
TN_RANGE(BFloat16, bfloat16, double)
TN_RANGE(int32_t, int32, int64_t)
TN_RANGE(int64_t, int64, int64_t)

#define TN_LINE(S, type)                                                   \
  TN_KERNEL(line_##type, int64_t n, const S* start, const S* stop, S* y) { \
    line(n, start, stop, y);                                               \
  }
TN_LINE(float, float32)
TN_LINE(double, float64)
TN_LINE(Float16, float16)
TN_LINE(BFloat16, bfloat16)

}  // namespace treenail::gpu
