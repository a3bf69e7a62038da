// SPDX-License-Identifier: Apache-2.0
// ExtractImagePatches, which moves elements, and its adjoint. The adjoint gathers: each pixel sums,
// in the order of the taps, what the windows over it hold, so rows of pixels are independent.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/image/patch_geometry.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
constexpr double kChunkNs = 50000;

// A window row of zeros and pixels: those of image row `row`, or none.
template <class T>
void copy_window_row(const Patches& p, const T* row, int64_t first, T* to) {
  const WindowAxis& a = p.columns;
  for (int64_t s = 0; s < a.taps; ++s, to += p.channels) {
    const int64_t x = first + s * a.dilation;
    if (row != nullptr && x >= 0 && x < a.input) {
      copy_elements(to, row + x * p.channels, p.channels);
    } else {
      std::fill_n(to, p.channels, T{});
    }
  }
}

template <class T>
void extract_line(const Patches& p, const T* image, int64_t y, T* to) {
  const int64_t window_row = p.columns.taps * p.channels;
  for (int64_t x = 0; x < p.columns.output; ++x) {
    const int64_t first = x * p.columns.stride - p.columns.pad_before;
    for (int64_t r = 0; r < p.rows.taps; ++r, to += window_row) {
      const int64_t row = y * p.rows.stride - p.rows.pad_before + r * p.rows.dilation;
      const bool inside = row >= 0 && row < p.rows.input;
      copy_window_row(p, inside ? image + row * p.columns.input * p.channels : nullptr, first, to);
    }
  }
}

KernelPtr prepare_patches(const PrepareContext& c) {
  const Patches p(c.op(), c.input_shape(0));
  if (c.output_shape(0).num_elements() == 0) return make_kernel([](RunContext&) {});
  return dispatch_element(c.input_type(0), [&]<class T>() -> KernelPtr {
    if constexpr (!is_plain_element<T>) {
      throw_dtype_not_handled(c.input_type(0));
    } else {
      const int64_t line = p.columns.output * p.patch();
      const double cost = 0.3 * static_cast<double>(line) * sizeof(T) / 4;
      const int64_t lines = p.batch * p.rows.output;
      return make_kernel(
          [p, line, lines, cost](RunContext& c) {
            const T* from = elements<T>(c.input(0));
            T* const to = elements<T>(c.output(0));
            const int64_t image = p.rows.input * p.columns.input * p.channels;
            c.parallel_for(lines, static_cast<int64_t>(std::max(1.0, kChunkNs / cost)), cost,
                           [&](int64_t i, int64_t end) {
                             for (; i < end; ++i)
                               extract_line(p, from + i / p.rows.output * image, i % p.rows.output,
                                            to + i * line);
                           });
          },
          cost * static_cast<double>(lines));
    }
  });
}

// The window whose tap `tap` is at `position`, or -1.
int64_t window_at(const WindowAxis& a, int64_t position, int64_t tap) {
  const int64_t first = position + a.pad_before - tap * a.dilation;
  if (first < 0 || first % a.stride != 0) return -1;
  const int64_t window = first / a.stride;
  return window < a.output ? window : -1;
}

// One pixel, some channels at a time.
template <class T>
void gather_pixel(const Patches& p, const T* patches, int64_t y, int64_t x, T* to) {
  using Sum = std::conditional_t<sizeof(T) == 2, float, T>;
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < p.channels; begin += kBlock) {
    const int64_t count = std::min(kBlock, p.channels - begin);
    Sum sums[kBlock] = {};
    for (int64_t r = 0; r < p.rows.taps; ++r) {
      const int64_t row = window_at(p.rows, y, r);
      if (row < 0) continue;
      for (int64_t s = 0; s < p.columns.taps; ++s) {
        const int64_t column = window_at(p.columns, x, s);
        if (column < 0) continue;
        const T* from = patches + (row * p.columns.output + column) * p.patch() +
                        (r * p.columns.taps + s) * p.channels + begin;
        for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<Sum>(from[i]);
      }
    }
    for (int64_t i = 0; i < count; ++i) to[begin + i] = static_cast<T>(sums[i]);
  }
}

template <class T>
KernelPtr prepare_gradient(const PrepareContext& c) {
  const Patches p(c.op(), c.output_shape(0));
  if (c.output_shape(0).num_elements() == 0) return make_kernel([](RunContext&) {});
  const double taps = static_cast<double>(p.rows.taps) * static_cast<double>(p.columns.taps);
  const double cost =
      static_cast<double>(p.columns.input) * taps * (2 + 0.5 * static_cast<double>(p.channels));
  const int64_t lines = p.batch * p.rows.input;
  return make_kernel(
      [p, lines, cost](RunContext& c) {
        const T* from = c.input(1).data<T>();
        T* const to = c.output(0).data<T>();
        const int64_t line = p.columns.input * p.channels;
        const int64_t image = p.rows.output * p.columns.output * p.patch();
        c.parallel_for(lines, static_cast<int64_t>(std::max(1.0, kChunkNs / cost)), cost,
                       [&](int64_t i, int64_t end) {
                         for (; i < end; ++i) {
                           for (int64_t x = 0; x < p.columns.input; ++x)
                             gather_pixel(p, from + i / p.rows.input * image, i % p.rows.input, x,
                                          to + i * line + x * p.channels);
                         }
                       });
      },
      cost * static_cast<double>(lines));
}

}  // namespace

void register_patches_kernels(KernelRegistry& r) {
  r.add("ExtractImagePatches", {}, prepare_patches);
  const auto gradient = [&](DType type, PrepareFn prepare) {
    r.add("ExtractImagePatchesGrad", {{"T", {type}}}, prepare);
  };
  gradient(DType::kFloat32, prepare_gradient<float>);
  gradient(DType::kFloat64, prepare_gradient<double>);
  gradient(DType::kFloat16, prepare_gradient<Float16>);
  gradient(DType::kBFloat16, prepare_gradient<BFloat16>);
}

}  // namespace treenail::host
