// SPDX-License-Identifier: Apache-2.0
// Cumsum, Cumprod, CumulativeLogsumexp and LinearRecurrence along one axis. Half-width floats are
// accumulated in float and rounded element by element; narrow integers wrap in their own type.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/axis_split.h"

namespace treenail::host {
namespace {

// Columns that are accumulated side by side.
constexpr int64_t kStrip = 256;

template <class T>
constexpr bool kHalfWidth = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// Signed overflow is undefined in C++: integers accumulate as unsigned ones, at least as wide as
// int.
template <class T>
struct Wide {
  using type = T;
};
template <class T>
requires kHalfWidth<T>
struct Wide<T> {
  using type = float;
};
template <class T>
requires std::is_integral_v<T>
struct Wide<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <class T>
using Accumulator = typename Wide<T>::type;

struct Direction {
  bool exclusive;
  bool reverse;
};

template <bool kProduct, class T>
void scan_columns(const T* x, T* y, const AxisSplit& s, int64_t m, Direction d) {
  using A = Accumulator<T>;
  A total[kStrip];
  std::fill_n(total, m, A(kProduct ? 1 : 0));
  for (int64_t k = 0; k < s.extent; ++k) {
    const int64_t at = (d.reverse ? s.extent - 1 - k : k) * s.inner;
    for (int64_t j = 0; j < m; ++j) {
      const A value = static_cast<A>(x[at + j]), before = total[j];
      if constexpr (kProduct) {
        total[j] = before * value;
      } else {
        total[j] = before + value;
      }
      y[at + j] = static_cast<T>(d.exclusive ? before : total[j]);
    }
  }
}

// One row of neighbouring elements.
template <bool kProduct, class T>
void scan_row(const T* x, T* y, int64_t n, Direction d) {
  using A = Accumulator<T>;
  A total = A(kProduct ? 1 : 0);
  const int64_t step = d.reverse ? -1 : 1;
  if (d.reverse) x += n - 1, y += n - 1;
  for (int64_t k = 0; k < n; ++k, x += step, y += step) {
    const A value = static_cast<A>(*x), before = total;
    if constexpr (kProduct) {
      total = before * value;
    } else {
      total = before + value;
    }
    *y = static_cast<T>(d.exclusive ? before : total);
  }
}

// body(offset of the first element, columns) for each strip, in parallel; `ns` a number of the axis
// and column.
template <class Body>
void each_strip(RunContext& c, const AxisSplit& s, double ns, const Body& body) {
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  ns *= static_cast<double>(s.extent * std::min(s.inner, kStrip));
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(10000 / std::max(ns, 1.0)));
  c.parallel_for(s.outer * strips, grain, ns, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t left = item % strips * kStrip;
      body(item / strips * s.extent * s.inner + left, std::min(kStrip, s.inner - left));
    }
  });
}

template <bool kProduct, class T>
void scan(RunContext& c, const AxisSplit& s, Direction d) {
  const T* x = c.input(0).data<T>();
  T* y = c.output(0).data<T>();
  each_strip(c, s, 1.0, [&](int64_t offset, int64_t columns) {
    if (s.inner == 1) {
      scan_row<kProduct>(x + offset, y + offset, s.extent, d);
    } else {
      scan_columns<kProduct>(x + offset, y + offset, s, columns, d);
    }
  });
}

template <bool kProduct>
std::unique_ptr<Kernel> prepare_scan(const PrepareContext& c) {
  const AxisSplit split = split_at_axis(c, 1);
  const Direction direction = {c.op().get_bool("exclusive"), c.op().get_bool("reverse")};
  const DType dtype = c.input_type(0);
  const bool empty = c.input_shape(0).num_elements() == 0;
  return make_kernel(
      [=](RunContext& run) {
        if (empty) return;
        dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                 uint32_t, int64_t, uint64_t, std::complex<float>, std::complex<double>>(
            dtype, [&]<class T>() { scan<kProduct, T>(run, split, direction); });
      },
      static_cast<double>(c.input_shape(0).num_elements()));
}

// log(e^x[0] + … + e^x[i]) as m + log(s), m the largest x so far and s the sum of e^(x - m).
struct LogSum {
  double most = -std::numeric_limits<double>::infinity();
  double sum = 0;
  void add(double x) {
    if (x <= most) {
      sum += x == most ? 1 : std::exp(x - most);
    } else {  // also NaN, which stays
      sum = std::isinf(x) ? 1 : sum * std::exp(most - x) + 1;
      most = x;
    }
  }
  double value() const { return std::isinf(most) ? most : most + std::log(sum); }
};

template <class T>
T lowest_finite() {
  if constexpr (std::is_same_v<T, Float16>) return static_cast<T>(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return static_cast<T>(-0x1.fep127f);
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::lowest();
}

template <class T>
void log_sum_columns(const T* x, T* y, const AxisSplit& s, int64_t m, Direction d) {
  LogSum total[kStrip];
  for (int64_t k = 0; k < s.extent; ++k) {
    const int64_t at = (d.reverse ? s.extent - 1 - k : k) * s.inner;
    for (int64_t j = 0; j < m; ++j) {
      const auto value = static_cast<double>(static_cast<Accumulator<T>>(x[at + j]));
      if (d.exclusive) {
        y[at + j] = k == 0 ? lowest_finite<T>()
                           : static_cast<T>(static_cast<Accumulator<T>>(total[j].value()));
      }
      total[j].add(value);
      if (!d.exclusive) y[at + j] = static_cast<T>(static_cast<Accumulator<T>>(total[j].value()));
    }
  }
}

std::unique_ptr<Kernel> prepare_log_sum(const PrepareContext& c) {
  const AxisSplit split = split_at_axis(c, 1);
  const Direction direction = {c.op().get_bool("exclusive"), c.op().get_bool("reverse")};
  const DType dtype = c.input_type(0);
  const int64_t n = c.input_shape(0).num_elements();
  return make_kernel(
      [=](RunContext& run) {
        if (n == 0) return;
        dispatch<float, double, Float16, BFloat16>(dtype, [&]<class T>() {
          const T* x = run.input(0).data<T>();
          T* y = run.output(0).data<T>();
          each_strip(run, split, 20.0, [&](int64_t at, int64_t columns) {
            log_sum_columns(x + at, y + at, split, columns, direction);
          });
        });
      },
      static_cast<double>(n) * 20);
}

// Columns of out and before, from the first element of the strip.
template <class T>
void recur_columns(const T* x, const T* decay, T* out, T* before, const AxisSplit& s, int64_t m,
                   bool reverse) {
  using A = Accumulator<T>;
  A total[kStrip];
  std::fill_n(total, m, A(0));
  for (int64_t k = 0; k < s.extent; ++k) {
    const int64_t at = (reverse ? s.extent - 1 - k : k) * s.inner;
    for (int64_t j = 0; j < m; ++j) {
      before[at + j] = static_cast<T>(total[j]);
      const A carried = k == 0 ? A(0) : static_cast<A>(decay[at + j]) * total[j];
      total[j] = static_cast<A>(x[at + j]) + carried;
      out[at + j] = static_cast<T>(total[j]);
    }
  }
}

template <class T>
void recur(RunContext& c, const AxisSplit& s, bool reverse) {
  const T* x = c.input(0).data<T>();
  const T* decay = c.input(1).data<T>();
  T* out = c.output(0).data<T>();
  T* before = c.output(1).data<T>();
  each_strip(c, s, 2.0, [&](int64_t at, int64_t columns) {
    recur_columns(x + at, decay + at, out + at, before + at, s, columns, reverse);
  });
}

std::unique_ptr<Kernel> prepare_recurrence(const PrepareContext& c) {
  const AxisSplit split = split_at_axis(c, 2);
  const bool reverse = c.op().get_bool("reverse");
  const DType dtype = c.input_type(0);
  const bool empty = c.input_shape(0).num_elements() == 0;
  return make_kernel(
      [=](RunContext& run) {
        if (empty) return;
        dispatch<float, double, Float16, BFloat16, std::complex<float>, std::complex<double>>(
            dtype, [&]<class T>() { recur<T>(run, split, reverse); });
      },
      static_cast<double>(c.input_shape(0).num_elements()) * 2);
}

}  // namespace

void register_scan_kernels(KernelRegistry& registry) {
  registry.add("Cumsum", {}, prepare_scan<false>);
  registry.add("Cumprod", {}, prepare_scan<true>);
  registry.add("CumulativeLogsumexp", {}, prepare_log_sum);
  registry.add("LinearRecurrence", {}, prepare_recurrence);
}

}  // namespace treenail::host
