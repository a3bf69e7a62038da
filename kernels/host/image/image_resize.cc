// SPDX-License-Identifier: Apache-2.0
// ResizeNearestNeighbor, which moves pixels, and its adjoint: the results taken from one pixel lie
// side by side, so a pixel of the adjoint is the sum over a rectangle. Interpolation:
// kernels/cpu/image/image_resize.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
constexpr double kChunkNs = 50000;

// From `old` pixels to `made` ones. As in TensorFlow the place is computed in float.
struct NearestAxis {
  int64_t old, made;
  bool align, centers;
  float scale;

  NearestAxis(const OpInstance& op, int64_t old, int64_t made)
      : old(old),
        made(made),
        align(op.get_bool("align_corners")),
        centers(op.get_bool("half_pixel_centers")),
        scale(align && made > 1 ? static_cast<float>(old - 1) / static_cast<float>(made - 1)
                                : static_cast<float>(old) / static_cast<float>(made)) {}

  // Never decreases with i.
  int64_t pixel(int64_t i) const {
    const float at = (static_cast<float>(i) + (centers ? 0.5F : 0.0F)) * scale;
    const float place = align ? std::round(at) : std::floor(at);
    return std::min(old - 1, static_cast<int64_t>(place));
  }
  // The first result taken from pixel `wanted` or a later one.
  int64_t first_from(int64_t wanted) const {
    int64_t low = 0, high = made;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (pixel(middle) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// f(integral_constant): the number of channels, or 0 where it is an unusual one.
template <class F>
void by_channels(int64_t channels, F f) {
  switch (channels) {
    case 1:
      return f(std::integral_constant<int64_t, 1>{});
    case 3:
      return f(std::integral_constant<int64_t, 3>{});
    case 4:
      return f(std::integral_constant<int64_t, 4>{});
    default:
      return f(std::integral_constant<int64_t, 0>{});
  }
}

KernelPtr prepare_resize(const PrepareContext& p) {
  const Shape &from = p.input_shape(0), &to = p.output_shape(0);
  if (to.num_elements() == 0) return make_kernel([](RunContext&) {});
  const NearestAxis rows(p.op(), from.dim(1), to.dim(1)), columns(p.op(), from.dim(2), to.dim(2));
  const int64_t channels = from.dim(3), lines = to.dim(0) * to.dim(1);
  return dispatch_element(p.input_type(0), [&]<class T>() -> KernelPtr {
    const double cost =
        static_cast<double>(columns.made) * (3 + kMoveCost<T> * static_cast<double>(channels));
    return make_kernel(
        [=](RunContext& c) {
          const T* images = elements<T>(c.input(0));
          T* const out = elements<T>(c.output(0));
          auto* const places = reinterpret_cast<int64_t*>(c.scratch());
          for (int64_t x = 0; x < columns.made; ++x) places[x] = columns.pixel(x) * channels;
          c.parallel_for(
              lines, static_cast<int64_t>(std::max(1.0, kChunkNs / cost)), cost,
              [&](int64_t i, int64_t end) {
                for (; i < end; ++i) {
                  const int64_t row = i / rows.made * rows.old + rows.pixel(i % rows.made);
                  const T* line = images + row * columns.old * channels;
                  T* place = out + i * columns.made * channels;
                  by_channels(channels,
                              [&]<int64_t kChannels>(std::integral_constant<int64_t, kChannels>) {
                                const int64_t n = kChannels > 0 ? kChannels : channels;
                                for (int64_t x = 0; x < columns.made; ++x, place += n)
                                  copy_elements(place, line + places[x], n);
                              });
                }
              });
        },
        cost * static_cast<double>(lines), static_cast<size_t>(columns.made) * sizeof(int64_t));
  });
}

// What elements are summed in; integers wrap around.
template <class T>
using SumOf =
    std::conditional_t<std::is_integral_v<T>,
                       std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>,
                       std::conditional_t<sizeof(T) == 2, float, T>>;

// Where a pixel of the adjoint comes from: rows [top, bottom) and columns [left, right) of results.
struct Rectangle {
  int64_t top, bottom, left, right;
};

// The sum of `count` channels over a rectangle of lines of `line` elements, `step` to a pixel.
template <int64_t kMost, class T>
void sum_rectangle(const T* from, const Rectangle& r, int64_t line, int64_t step, int64_t count,
                   T* to) {
  SumOf<T> sums[kMost] = {};
  for (int64_t y = r.top; y < r.bottom; ++y) {
    const T* pixel = from + y * line + r.left * step;
    for (int64_t x = r.left; x < r.right; ++x, pixel += step) {
      for (int64_t k = 0; k < count; ++k)
        sums[k] = static_cast<SumOf<T>>(sums[k] + static_cast<SumOf<T>>(pixel[k]));
    }
  }
  for (int64_t k = 0; k < count; ++k) to[k] = static_cast<T>(sums[k]);
}

// A line of the adjoint from rows [top, bottom); starts[x]: the first column taken from pixel x.
template <class T>
void sum_line(const T* image, int64_t top, int64_t bottom, const int64_t* starts, int64_t pixels,
              int64_t line, int64_t channels, T* to) {
  by_channels(channels, [&]<int64_t kChannels>(std::integral_constant<int64_t, kChannels>) {
    for (int64_t x = 0; x < pixels; ++x) {
      const Rectangle r = {top, bottom, starts[x], starts[x + 1]};
      if constexpr (kChannels > 0) {
        sum_rectangle<kChannels>(image, r, line, kChannels, kChannels, to + x * kChannels);
      } else {
        constexpr int64_t kBlock = 64;
        for (int64_t k = 0; k < channels; k += kBlock)
          sum_rectangle<kBlock>(image + k, r, line, channels, std::min(kBlock, channels - k),
                                to + x * channels + k);
      }
    }
  });
}

template <class T>
KernelPtr prepare_gradient(const PrepareContext& p) {
  const Shape &from = p.input_shape(0), &to = p.output_shape(0);
  if (to.num_elements() == 0) return make_kernel([](RunContext&) {});
  const NearestAxis rows(p.op(), to.dim(1), from.dim(1)), columns(p.op(), to.dim(2), from.dim(2));
  const int64_t channels = from.dim(3), lines = to.dim(0) * to.dim(1);
  const double results = static_cast<double>(from.num_elements()) / static_cast<double>(lines);
  const double cost = 3.0 * static_cast<double>(columns.old) + results;
  return make_kernel(
      [=](RunContext& c) {
        const T* grads = c.input(0).data<T>();
        T* const out = c.output(0).data<T>();
        auto* const starts = reinterpret_cast<int64_t*>(c.scratch());
        for (int64_t x = 0; x <= columns.old; ++x) starts[x] = columns.first_from(x);
        const int64_t line = columns.made * channels;
        c.parallel_for(lines, static_cast<int64_t>(std::max(1.0, kChunkNs / cost)), cost,
                       [&](int64_t i, int64_t end) {
                         for (; i < end; ++i) {
                           const int64_t row = i % rows.old;
                           sum_line(grads + i / rows.old * rows.made * line, rows.first_from(row),
                                    rows.first_from(row + 1), starts, columns.old, line, channels,
                                    out + i * columns.old * channels);
                         }
                       });
      },
      cost * static_cast<double>(lines), static_cast<size_t>(columns.old + 1) * sizeof(int64_t));
}

template <class T>
void register_gradient(KernelRegistry& r) {
  r.add("ResizeNearestNeighborGrad", {{"T", {dtype_of<T>}}}, prepare_gradient<T>);
}

}  // namespace

void register_image_resize_kernels(KernelRegistry& r) {
  r.add("ResizeNearestNeighbor", {}, prepare_resize);
  register_gradient<int8_t>(r);
  register_gradient<uint8_t>(r);
  register_gradient<int32_t>(r);
  register_gradient<float>(r);
  register_gradient<double>(r);
  register_gradient<Float16>(r);
  register_gradient<BFloat16>(r);
}

}  // namespace treenail::host
