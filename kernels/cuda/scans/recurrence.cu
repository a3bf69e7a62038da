// SPDX-License-Identifier: Apache-2.0
// Running combinations whose parts cannot be combined in any other order without overflow or loss:
// a thread for each column of [outer, extent, inner], as the CPU does them.
#include <cmath>

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/numbers.h"
#include "kernels/cuda/scans/column_scan.h"

namespace treenail::gpu {

TN_DEVICE int64_t place_of(const ColumnScan& s, int64_t column, int64_t k) {
  const int64_t at = s.reverse != 0 ? s.extent - 1 - k : k;
  return (column / s.inner * s.extent + at) * s.inner + column % s.inner;
}

// out[k] = x[k] + decay[k] * out[k - 1], without the first decay; before[k] = out[k - 1].
template <class S>
TN_DEVICE void recur(const ColumnScan& s, const S* x, const S* decay, S* out, S* before) {
  using C = Computed<S>;
  for (int64_t column = first(); column < s.outer * s.inner; column += stride()) {
    C total = 0;
    for (int64_t k = 0; k < s.extent; ++k) {
      const int64_t at = place_of(s, column, k);
      before[at] = Stored<S>::narrow(total);
      const C carried = k == 0 ? C(0) : Stored<S>::widen(decay[at]) * total;
      total = Stored<S>::widen(x[at]) + carried;
      out[at] = Stored<S>::narrow(total);
    }
  }
}

// log(e^x[0] + ... + e^x[i]) as most + log(sum), sum that of e^(x - most).
struct LogSum {
  double most = kLowest<double>, sum = 0;
  TN_DEVICE void add(double x) {
    if (x <= most) {
      sum += x == most ? 1 : std::exp(x - most);
    } else {  // also NaN, which stays
      sum = infinite(x) ? 1 : sum * std::exp(most - x) + 1;
      most = x;
    }
  }
  TN_DEVICE double value() const { return infinite(most) ? most : most + std::log(sum); }
  TN_DEVICE static bool infinite(double x) { return x == x && x - x != 0; }
};

template <class S>
struct LowestFinite;
template <>
struct LowestFinite<float> {
  TN_DEVICE static float value() { return -0x1.fffffep127f; }
};
template <>
struct LowestFinite<double> {
  TN_DEVICE static double value() { return -0x1.fffffffffffffp1023; }
};
template <>
struct LowestFinite<Float16> {
  TN_DEVICE static Float16 value() { return {0xfbff}; }
};
template <>
struct LowestFinite<BFloat16> {
  TN_DEVICE static BFloat16 value() { return {0xff7f}; }
};

template <class S>
TN_DEVICE void sum_logs(const ColumnScan& s, const S* x, S* y) {
  using C = Computed<S>;
  for (int64_t column = first(); column < s.outer * s.inner; column += stride()) {
    LogSum total;
    for (int64_t k = 0; k < s.extent; ++k) {
      const int64_t at = place_of(s, column, k);
      const auto value = static_cast<double>(Stored<S>::widen(x[at]));
      const LogSum before = total;
      total.add(value);
      const LogSum& shown = s.exclusive != 0 ? before : total;
      y[at] = s.exclusive != 0 && k == 0 ? LowestFinite<S>::value()
                                         : Stored<S>::narrow(static_cast<C>(shown.value()));
    }
  }
}

#define TN_COLUMN_SCAN(S, type)                                                          \
  TN_KERNEL(recur_##type, ColumnScan s, const S* x, const S* decay, S* out, S* before) { \
    recur(s, x, decay, out, before);                                                     \
  }                                                                                      \
  TN_KERNEL(sum_logs_##type, ColumnScan s, const S* x, S* y) { sum_logs(s, x, y); }
TN_COLUMN_SCAN(float, float32)
TN_COLUMN_SCAN(double, float64)
TN_COLUMN_SCAN(Float16, float16)
TN_COLUMN_SCAN(BFloat16, bfloat16)

}  // namespace treenail::gpu
