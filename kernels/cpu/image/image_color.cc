// SPDX-License-Identifier: Apache-2.0
// Colours of images, pixel by pixel, and contrast, which needs the mean of each channel first.
// 16-bit pixels are computed in float.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
template <class T>
using ComputedIn = std::conditional_t<sizeof(T) == 2, float, T>;
constexpr int64_t kPixels = 1024;  // of a block that stays in the nearest cache

// --- Pixels
// ---------------------------------------------------------------------------------------

// Hue in sixths of a turn, [0, 6); the largest and the smallest channel.
template <class C>
struct Hue {
  C turn, most, least;

  explicit Hue(const C* rgb) {
    const C r = rgb[0], g = rgb[1], b = rgb[2];
    most = std::max(r, std::max(g, b));
    least = std::min(r, std::min(g, b));
    const C range = most - least;
    const C safe = range > 0 ? range : C(1);
    const C at_red = (g - b) / safe, at_green = (b - r) / safe + 2, at_blue = (r - g) / safe + 4;
    turn = r == most ? at_red : g == most ? at_green : at_blue;
    turn = range > 0 ? turn : C(0);
    turn = turn < 0 ? turn + 6 : turn;
  }
};

// Back to red, green and blue: each follows the distance of the hue from its own.
template <class C>
void write_rgb(C turn, C most, C least, C* rgb) {
  const auto limited = [](C x) { return std::min(std::max(x, C(0)), C(1)); };
  const C range = most - least;
  rgb[0] = least + range * limited(std::abs(turn - 3) - 1);
  rgb[1] = least + range * limited(2 - std::abs(turn - 2));
  rgb[2] = least + range * limited(2 - std::abs(turn - 4));
}

template <class C>
void rgb_to_hsv(const C* from, C* to, int64_t pixels, C) {
  for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
    const Hue<C> h(from);
    to[0] = h.turn / 6;
    to[1] = h.most > 0 ? (h.most - h.least) / h.most : C(0);
    to[2] = h.most;
  }
}

template <class C>
void hsv_to_rgb(const C* from, C* to, int64_t pixels, C) {
  for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
    const C turn = from[0] * 6, most = from[2];
    write_rgb(turn, most, most * (1 - from[1]), to);
  }
}

template <class C>
void turn_hue(const C* from, C* to, int64_t pixels, C delta) {
  for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
    const Hue<C> h(from);
    const C turns = h.turn / 6 + delta, turn = (turns - std::floor(turns)) * 6;
    write_rgb(turn, h.most, h.least, to);
  }
}

template <class C>
void scale_saturation(const C* from, C* to, int64_t pixels, C scale) {
  for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
    const Hue<C> h(from);
    const C saturation = h.most > 0 ? (h.most - h.least) / h.most : C(0);
    const C scaled = std::min(std::max(saturation * scale, C(0)), C(1));
    write_rgb(h.turn, h.most, h.most * (1 - scaled), to);
  }
}

// f on blocks of elements [begin, end) as C: the tensors' own, or widened from 16 bits and narrowed
// again. f(from, to, elements).
template <class C, class F>
void in_blocks(const Tensor& from, Tensor& to, int64_t begin, int64_t end, F f) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(from.dtype())) {
      float block[3 * kPixels];
      for (int64_t i = begin; i < end; i += 3 * kPixels) {
        const int64_t n = std::min(3 * kPixels, end - i);
        widen(from.dtype(), from.raw(), i, n, block);
        f(block, block, n);
        narrow(to.dtype(), block, n, to.raw(), i);
      }
      return;
    }
  }
  f(from.data<C>() + begin, to.data<C>() + begin, end - begin);
}

template <class C>
using PixelFn = void (*)(const C*, C*, int64_t, C);

// kAdjusts: input 1 is the scalar that the pixels are adjusted by.
template <class C, PixelFn<C> kPixel, bool kAdjusts>
KernelPtr prepare_pixels(const PrepareContext& c) {
  const int64_t pixels = c.output_shape(0).num_elements() / 3;
  return make_kernel(
      [pixels](RunContext& c) {
        C amount = 0;
        if constexpr (kAdjusts) amount = static_cast<C>(*c.input(1).data<float>());
        c.parallel_for(pixels, 4 * kPixels, 5, [&](int64_t begin, int64_t end) {
          in_blocks<C>(c.input(0), c.output(0), 3 * begin, 3 * end,
                       [amount](const C* x, C* y, int64_t n) { kPixel(x, y, n / 3, amount); });
        });
      },
      5.0 * static_cast<double>(pixels));
}

// --- Contrast
// -------------------------------------------------------------------------------------

// Means of the channels of one image, summed in double: rows of pixels in turn.
template <class T>
void channel_means(const T* image, int64_t pixels, int64_t channels, double* means) {
  std::fill_n(means, channels, 0.0);
  for (int64_t i = 0; i < pixels; ++i, image += channels) {
    for (int64_t k = 0; k < channels; ++k)
      means[k] += static_cast<double>(static_cast<ComputedIn<T>>(image[k]));
  }
  for (int64_t k = 0; k < channels; ++k) means[k] /= static_cast<double>(pixels);
}

template <class T>
KernelPtr prepare_contrast(const PrepareContext& c) {
  const Shape& shape = c.output_shape(0);
  if (shape.num_elements() == 0) return make_kernel([](RunContext&) {});
  const int rank = shape.rank();
  const int64_t channels = shape.dim(rank - 1), pixels = shape.dim(rank - 2) * shape.dim(rank - 3);
  const int64_t images = shape.num_elements() / (channels * pixels);
  const double cost = 3.0 * static_cast<double>(channels * pixels);
  return make_kernel(
      [=](RunContext& c) {
        using C = ComputedIn<T>;
        const T* from = c.input(0).data<T>();
        T* const to = c.output(0).data<T>();
        const C factor = static_cast<C>(*c.input(1).data<float>());
        auto* const means = reinterpret_cast<double*>(c.scratch());
        c.run_chunks(images, cost * static_cast<double>(images), [&](int64_t i) {
          const T* image = from + i * pixels * channels;
          T* out = to + i * pixels * channels;
          double* const mean = means + i * channels;
          channel_means(image, pixels, channels, mean);
          for (int64_t p = 0; p < pixels; ++p, image += channels, out += channels) {
            for (int64_t k = 0; k < channels; ++k) {
              const C m = static_cast<C>(mean[k]);
              out[k] = static_cast<T>((static_cast<C>(image[k]) - m) * factor + m);
            }
          }
        });
      },
      cost * static_cast<double>(images), static_cast<size_t>(images * channels) * sizeof(double));
}

template <class C>
void register_pixels(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  r.add("RGBToHSV", {type}, prepare_pixels<C, rgb_to_hsv<C>, false>);
  r.add("HSVToRGB", {type}, prepare_pixels<C, hsv_to_rgb<C>, false>);
  r.add("AdjustHue", {type}, prepare_pixels<C, turn_hue<C>, true>);
  r.add("AdjustSaturation", {type}, prepare_pixels<C, scale_saturation<C>, true>);
}

template <class T>
void register_contrast(KernelRegistry& r) {
  r.add("AdjustContrast", {{"T", {dtype_of<T>}}}, prepare_contrast<T>);
}

}  // namespace

void register_image_color_kernels(KernelRegistry& r) {
  register_pixels<float>(r);
  register_pixels<double>(r);
  register_contrast<Float16>(r);
  register_contrast<BFloat16>(r);
  register_contrast<float>(r);
  register_contrast<double>(r);
}

}  // namespace treenail::cpu
