// SPDX-License-Identifier: Apache-2.0
// Convolution tap by tap, each over the windows that it meets the input in: what windows cover
// beside the input takes neither memory nor time. For large dilations and paddings; elsewhere the
// padded copies of the other algorithms are faster.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/products/gemm.h"

namespace treenail::cpu {
namespace {

// The taps [first, end) of an axis that some window of [begin, last] meets the input in, at least.
void taps_inside(const WindowAxis& a, int64_t begin, int64_t last, int64_t& first, int64_t& end) {
  const int64_t least = a.pad_before - last * a.stride;  // input = window * stride + tap * dilation
  const int64_t most = a.pad_before - begin * a.stride + a.input - 1;  // - pad_before
  first = least <= 0 ? 0 : (least + a.dilation - 1) / a.dilation;
  end = most < 0 ? 0 : std::min(a.taps, most / a.dilation + 1);
}

// One tap along one line of columns: `count` windows from `window` on meet the input from `column`
// on, a stride apart.
struct Run {
  int64_t window, column, count;
  Run(const WindowAxis& a, int64_t tap) {
    int64_t end;
    windows_inside(a, tap, window, end);
    count = end - window;
    column = window * a.stride + tap * a.dilation - a.pad_before;
  }
};

template <class T>
class TapsForward final : public ConvAlgorithm<T> {
 public:
  explicit TapsForward(const ConvGeometry& g) : g_(g) {
    this->cost_ns = g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte*) const override {
    const int64_t lines = g_.planes.output * g_.rows.output;
    const int64_t elements = g_.columns.output * g_.filters;
    c.parallel_for(g_.batch * lines, 1, this->cost_ns / static_cast<double>(g_.batch * lines),
                   [&](int64_t line, int64_t end) {
                     for (; line < end; ++line) {
                       one_line(a + line / lines * g_.input_pixels() * g_.channels, b,
                                line % lines / g_.rows.output, line % g_.rows.output,
                                out + line * elements);
                     }
                   });
  }

 private:
  void one_line(const T* image, const T* filter, int64_t z, int64_t y, T* out) const {
    std::fill_n(out, g_.columns.output * g_.filters, T(0));
    int64_t q, q1, r0, r1, s0, s1;
    taps_inside(g_.planes, z, z, q, q1);
    taps_inside(g_.rows, y, y, r0, r1);
    taps_inside(g_.columns, 0, g_.columns.output - 1, s0, s1);
    for (; q < q1; ++q) {
      const int64_t plane = plane_of_tap(g_, z, q);
      for (int64_t r = r0; r < r1; ++r) {
        const int64_t row = y * g_.rows.stride + r * g_.rows.dilation - g_.rows.pad_before;
        const T* line = image + (plane * g_.rows.input + row) * g_.columns.input * g_.channels;
        for (int64_t s = s0; s < s1; ++s) {
          const Run run(g_.columns, s);
          if (run.count <= 0) continue;
          const int64_t tap = (q * g_.rows.taps + r) * g_.columns.taps + s;
          add(run, line + run.column * g_.channels, filter, tap, out + run.window * g_.filters);
        }
      }
    }
  }

  void add(const Run& run, const T* from, const T* filter, int64_t tap, T* out) const {
    const int64_t step = g_.columns.stride * g_.channels;
    if (!g_.depthwise) {
      Product<T> p;
      p.m = run.count;
      p.n = g_.filters;
      p.k = g_.channels;
      p.a = from;
      p.lda = step;
      p.b = filter + tap * g_.channels * g_.filters;
      p.ldb = g_.filters;
      p.c = out;
      p.ldc = g_.filters;
      p.add_to_c = true;
      multiply_block(p, 0, p.m, 0, p.n);
      return;
    }
    const int64_t multiplier = g_.filters / g_.channels;
    const T* const weights = filter + tap * g_.filters;
    for (int64_t x = 0; x < run.count; ++x, from += step, out += g_.filters) {
      for (int64_t f = 0; f < g_.filters; ++f) out[f] += from[f / multiplier] * weights[f];
    }
  }

  ConvGeometry g_;
};

// The gradient of a depthwise convolution's input: a chunk is an image.
template <class T>
class DepthwiseTapsInput final : public ConvAlgorithm<T> {
 public:
  explicit DepthwiseTapsInput(const ConvGeometry& g) : g_(g) {
    this->cost_ns = 2 * g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte*) const override {
    c.run_chunks(g_.batch, this->cost_ns, [&](int64_t image) {
      T* const to = out + image * g_.input_pixels() * g_.channels;
      std::fill_n(to, g_.input_pixels() * g_.channels, T(0));
      for (int64_t y = 0; y < g_.rows.output; ++y) {
        const T* gradient = b + (image * g_.rows.output + y) * g_.columns.output * g_.filters;
        one_line(gradient, a, y, to);
      }
    });
  }

 private:
  void one_line(const T* gradient, const T* filter, int64_t y, T* to) const {
    const int64_t multiplier = g_.filters / g_.channels;
    int64_t r, r1, s0, s1;
    taps_inside(g_.rows, y, y, r, r1);
    taps_inside(g_.columns, 0, g_.columns.output - 1, s0, s1);
    for (; r < r1; ++r) {
      const int64_t row = y * g_.rows.stride + r * g_.rows.dilation - g_.rows.pad_before;
      for (int64_t s = s0; s < s1; ++s) {
        const Run run(g_.columns, s);
        const T* const weights = filter + (r * g_.columns.taps + s) * g_.filters;
        for (int64_t x = 0; x < run.count; ++x) {
          const T* from = gradient + (run.window + x) * g_.filters;
          const int64_t column = run.column + x * g_.columns.stride;
          T* pixel = to + (row * g_.columns.input + column) * g_.channels;
          for (int64_t f = 0; f < g_.filters; ++f) pixel[f / multiplier] += from[f] * weights[f];
        }
      }
    }
  }

  ConvGeometry g_;
};

// The gradient of the filter: a chunk is a tap, summed over the images in order.
template <class T>
class TapsFilter final : public ConvAlgorithm<T> {
 public:
  explicit TapsFilter(const ConvGeometry& g)
      : g_(g), elements_(g.filters * (g.depthwise ? 1 : g.channels)) {
    this->cost_ns = g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte*) const override {
    c.parallel_for(g_.taps(), 1, this->cost_ns / static_cast<double>(g_.taps()),
                   [&](int64_t tap, int64_t end) {
                     for (; tap < end; ++tap) one_tap(tap, a, b, out + tap * elements_);
                   });
  }

 private:
  void one_tap(int64_t tap, const T* images, const T* gradients, T* to) const {
    std::fill_n(to, elements_, T(0));
    const int64_t q = tap / g_.plane_taps(), r = tap / g_.columns.taps % g_.rows.taps;
    int64_t z0, z1, y0, y1;
    windows_inside(g_.planes, q, z0, z1);
    windows_inside(g_.rows, r, y0, y1);
    const Run run(g_.columns, tap % g_.columns.taps);
    if (run.count <= 0) return;
    for (int64_t image = 0; image < g_.batch; ++image) {
      for (int64_t z = z0; z < z1; ++z) {
        const int64_t plane = image * g_.planes.input + plane_of_tap(g_, z, q);
        for (int64_t y = y0; y < y1; ++y) {
          const int64_t row = y * g_.rows.stride + r * g_.rows.dilation - g_.rows.pad_before;
          const int64_t line = plane * g_.rows.input + row;
          const int64_t result = (image * g_.planes.output + z) * g_.rows.output + y;
          add(run, images + (line * g_.columns.input + run.column) * g_.channels,
              gradients + (result * g_.columns.output + run.window) * g_.filters, to);
        }
      }
    }
  }

  void add(const Run& run, const T* from, const T* gradient, T* to) const {
    const int64_t step = g_.columns.stride * g_.channels;
    if (!g_.depthwise) {
      Product<T> p;
      p.m = g_.channels;
      p.n = g_.filters;
      p.k = run.count;
      p.trans_a = true;
      p.a = from;
      p.lda = step;
      p.b = gradient;
      p.ldb = g_.filters;
      p.c = to;
      p.ldc = g_.filters;
      p.add_to_c = true;
      multiply_block(p, 0, p.m, 0, p.n);
      return;
    }
    const int64_t multiplier = g_.filters / g_.channels;
    for (int64_t x = 0; x < run.count; ++x, from += step, gradient += g_.filters) {
      for (int64_t f = 0; f < g_.filters; ++f) to[f] += from[f / multiplier] * gradient[f];
    }
  }

  ConvGeometry g_;
  int64_t elements_;
};

}  // namespace

bool padding_dominates(const ConvGeometry& g) {
  constexpr double kMost = 16, kSmall = 4096;  // pixels; small copies stay in the nearest cache
  double covered = 1;
  for (const WindowAxis* a : {&g.planes, &g.rows, &g.columns}) {
    const double windows = static_cast<double>(a->output - 1) * static_cast<double>(a->stride);
    covered *= windows + static_cast<double>(a->taps - 1) * static_cast<double>(a->dilation) + 1;
  }
  return covered >
         kSmall + kMost * static_cast<double>(std::max(g.input_pixels(), g.output_pixels()));
}

template <class T>
ConvPtr<T> taps_pass(ConvPass pass, const ConvGeometry& g) {
  switch (pass) {
    case ConvPass::kForward:
      return std::make_unique<TapsForward<T>>(g);
    case ConvPass::kInput:
      if (g.depthwise) return std::make_unique<DepthwiseTapsInput<T>>(g);
      return direct_input<T>(g);  // adds up tap by tap where padding dominates
    case ConvPass::kFilter:
      return std::make_unique<TapsFilter<T>>(g);
  }
  return nullptr;
}
template ConvPtr<float> taps_pass(ConvPass, const ConvGeometry&);
template ConvPtr<double> taps_pass(ConvPass, const ConvGeometry&);

}  // namespace treenail::cpu
