// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin along one axis: the first of equal extrema, or the first NaN.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/axis_split.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

// Columns whose best values so far are kept side by side.
constexpr int64_t kStrip = 256;

template <bool kMax, class V>
bool better(V x, V best) {
  if constexpr (std::is_floating_point_v<V>) {
    if (best != best) return false;
    if (x != x) return true;
  }
  return kMax ? x > best : x < best;
}

template <bool kMax, class T, class Index>
void search_row(const T* x, int64_t n, Index* out) {
  auto best = comparable(x[0]);
  int64_t at = 0;
  for (int64_t i = 1; i < n; ++i) {
    const auto value = comparable(x[i]);
    if (better<kMax>(value, best)) best = value, at = i;
  }
  *out = static_cast<Index>(at);
}

// m columns over n rows of `stride` elements.
template <bool kMax, class T, class Index>
void search_columns(const T* x, int64_t n, int64_t stride, int64_t m, Index* out) {
  decltype(comparable(T())) best[kStrip];
  for (int64_t j = 0; j < m; ++j) best[j] = comparable(x[j]), out[j] = 0;
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      const auto value = comparable(x[i * stride + j]);
      if (better<kMax>(value, best[j])) best[j] = value, out[j] = static_cast<Index>(i);
    }
  }
}

template <bool kMax, class T, class Index>
void search(RunContext& c, const AxisSplit& s) {
  const T* x = c.input(0).data<T>();
  Index* out = c.output(0).data<Index>();
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  const double ns = 1.0 * static_cast<double>(s.extent * std::min(s.inner, kStrip));
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(10000 / std::max(ns, 1.0)));
  c.parallel_for(s.outer * strips, grain, ns, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t outer = item / strips, left = item % strips * kStrip;
      const T* from = x + outer * s.extent * s.inner + left;
      Index* to = out + outer * s.inner + left;
      if (s.inner == 1) {
        search_row<kMax>(from, s.extent, to);
      } else {
        search_columns<kMax>(from, s.extent, s.inner, std::min(kStrip, s.inner - left), to);
      }
    }
  });
}

template <bool kMax>
std::unique_ptr<Kernel> prepare_arg(const PrepareContext& c) {
  const AxisSplit split = split_at_axis(c, 1);
  const DType dtype = c.input_type(0);
  const bool wide = c.output_type(0) == DType::kInt64;
  const bool empty = c.output_shape(0).num_elements() == 0;
  return make_kernel(
      [=](RunContext& run) {
        if (empty) return;
        dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                 uint32_t, int64_t, uint64_t, bool>(dtype, [&]<class T>() {
          if (wide) {
            search<kMax, T, int64_t>(run, split);
          } else {
            search<kMax, T, int32_t>(run, split);
          }
        });
      },
      static_cast<double>(c.input_shape(0).num_elements()));
}

}  // namespace

void register_arg_reduction_kernels(KernelRegistry& registry) {
  registry.add("ArgMax", {}, prepare_arg<true>);
  registry.add("ArgMin", {}, prepare_arg<false>);
}

}  // namespace treenail::host
