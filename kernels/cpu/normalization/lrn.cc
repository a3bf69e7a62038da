// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels, and its gradient. One pixel at a time in
// a padded copy, so that the window at the first and last channels needs no test; sums over a
// window are added in the order of channels.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"
#include "kernels/host/normalization/lrn_attributes.h"

namespace treenail::cpu {
namespace {

template <class C>
struct Lrn {
  int64_t pixels, channels, radius;
  C bias, alpha, beta;
  int64_t grain, chunks;
  double cost;

  explicit Lrn(const PrepareContext& c) {
    const Shape& shape = c.output_shape(0);
    channels = shape.dim(3);
    pixels = channels == 0 ? 0 : shape.num_elements() / channels;
    const host::LrnAttributes attributes(c.op(), channels);
    radius = attributes.radius;
    bias = static_cast<C>(attributes.bias);
    alpha = static_cast<C>(attributes.alpha);
    beta = static_cast<C>(attributes.beta);
    grain = std::max<int64_t>(std::max<int64_t>(1, 2048 / std::max<int64_t>(1, channels)),
                              (pixels + 63) / 64);
    chunks = (pixels + grain - 1) / grain;
    cost = 50 + static_cast<double>(pixels * channels) * (10 + 0.2 * static_cast<double>(radius));
  }
  // One row of scratch: a pixel with `radius` zeros before and behind it.
  int64_t row() const { return (channels + 2 * radius + 15) / 16 * 16; }

  // to[i] = sum of padded[i ... i + 2 radius]
  void window_sum(const C* __restrict padded, C* __restrict to) const {
    std::copy_n(padded, channels, to);
    for (int64_t d = 1; d <= 2 * radius; ++d) {
      for (int64_t i = 0; i < channels; ++i) to[i] += padded[d + i];
    }
  }
  // n[i] = bias + alpha * sum of squares around i; `padded` is a cleared row.
  void norm(const C* x, C* padded, C* n) const {
    for (int64_t i = 0; i < channels; ++i) padded[radius + i] = x[i] * x[i];
    window_sum(padded, n);
    for (int64_t i = 0; i < channels; ++i) n[i] = bias + alpha * n[i];
  }
  C power(C n) const {
    if (beta == C(0.5)) return 1 / std::sqrt(n);
    if (beta == C(1)) return 1 / n;
    if (beta == C(0.75)) return 1 / (std::sqrt(n) * std::sqrt(std::sqrt(n)));
    return std::pow(n, -beta);
  }
};

constexpr int kRows = 6;

template <class C>
[[gnu::noinline]] void forward_pixel(const Lrn<C>& l, const C* x, C* y, C* rows) {
  C *const padded = rows, *const n = rows + l.row();
  l.norm(x, padded, n);
  for (int64_t i = 0; i < l.channels; ++i) y[i] = x[i] * l.power(n[i]);
}

// dx = g n^-beta - 2 alpha beta x W(g y / n)
template <class C>
[[gnu::noinline]] void gradient_pixel(const Lrn<C>& l, const C* g, const C* x, const C* y, C* dx,
                                      C* rows) {
  C *const padded = rows, *const n = rows + l.row(), *const sums = n + l.row();
  l.norm(x, padded, n);
  for (int64_t i = 0; i < l.channels; ++i) padded[l.radius + i] = g[i] * y[i] / n[i];
  l.window_sum(padded, sums);
  const C factor = 2 * l.alpha * l.beta;
  for (int64_t i = 0; i < l.channels; ++i) dx[i] = g[i] * l.power(n[i]) - factor * x[i] * sums[i];
}

// Runs pixel(inputs, output, rows) over all pixels; 16-bit pixels are widened one at a time into
// rows of scratch.
template <class C, int kInputs, class F>
std::unique_ptr<Kernel> prepare_pixels(const PrepareContext& c, F pixel) {
  const Lrn<C> l(c);
  const bool half = is_half(c.output_type(0));
  const int64_t per_chunk = kRows * l.row() + kInputs * l.row() + l.row();
  return make_kernel(
      [=](RunContext& c) {
        C* const scratch = reinterpret_cast<C*>(c.scratch());
        Tensor& out = c.output(0);
        c.run_chunks(l.chunks, l.cost, [&](int64_t chunk) {
          C* const rows = scratch + chunk * per_chunk;
          C* const wide = rows + kRows * l.row();
          std::fill_n(rows, l.row(), C(0));
          const int64_t end = std::min(l.pixels, (chunk + 1) * l.grain);
          for (int64_t p = chunk * l.grain; p < end; ++p) {
            const int64_t at = p * l.channels;
            const C* inputs[kInputs];
            if constexpr (std::is_same_v<C, float>) {
              if (half) {
                for (int i = 0; i < kInputs; ++i) {
                  const Tensor& from = c.input(i);
                  inputs[i] = wide + i * l.row();
                  widen(from.dtype(), from.raw(), at, l.channels, wide + i * l.row());
                }
                C* const result = wide + kInputs * l.row();
                pixel(l, inputs, result, rows);
                narrow(out.dtype(), result, l.channels, out.raw(), at);
                continue;
              }
            }
            for (int i = 0; i < kInputs; ++i) inputs[i] = c.input(i).data<C>() + at;
            pixel(l, inputs, out.data<C>() + at, rows);
          }
        });
      },
      l.cost, static_cast<size_t>(l.chunks * per_chunk) * sizeof(C));
}

template <class C>
std::unique_ptr<Kernel> prepare_lrn(const PrepareContext& c) {
  return prepare_pixels<C, 1>(c, [](const Lrn<C>& l, const C* const* in, C* out, C* rows) {
    forward_pixel(l, in[0], out, rows);
  });
}

template <class C>
std::unique_ptr<Kernel> prepare_lrn_grad(const PrepareContext& c) {
  return prepare_pixels<C, 3>(c, [](const Lrn<C>& l, const C* const* in, C* out, C* rows) {
    gradient_pixel(l, in[0], in[1], in[2], out, rows);
  });
}

template <class C>
void register_types(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  r.add("LRN", {type}, prepare_lrn<C>);
  r.add("LRNGrad", {type}, prepare_lrn_grad<C>);
}

}  // namespace

void register_lrn_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
