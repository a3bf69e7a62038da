// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in all three passes: vectors of channels, no channel meets another.
// Channels are first repeated once per multiplier and padded to whole vectors, in a padded copy of
// a band of the image; then every pass is one loop over taps.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"
#include "kernels/cpu/simd/aligned.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {
namespace {

// The geometry seen per output channel.
template <class T>
struct Depthwise {
  ConvGeometry g;
  int64_t multiplier, width;        // width: output channels rounded up to whole vectors
  int64_t band_rows, band_columns;  // of the padded copy of a whole image

  explicit Depthwise(const ConvGeometry& geometry) : g(geometry) {
    multiplier = g.filters / g.channels;
    width = (g.filters + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    band_columns = (g.columns.output - 1) * g.columns.stride + g.columns.extent();
    band_rows = (g.rows.output - 1) * g.rows.stride + g.rows.extent();
  }
  int64_t band_elements(int64_t rows) const {
    return aligned(((rows - 1) * g.rows.stride + g.rows.extent()) * band_columns * width);
  }
  double work() const {
    return static_cast<double>(g.batch * g.output_pixels()) * static_cast<double>(g.taps() * width);
  }

  // One image row, or zeros where there is none, spread out: padded left and right, channels
  // repeated.
  void spread_row(const T* image, int64_t row, T* to) const {
    std::fill_n(to, band_columns * width, T(0));
    if (row < 0 || row >= g.rows.input) return;
    const T* from = image + row * g.columns.input * g.channels;
    const int64_t end = std::min(g.columns.input, band_columns - g.columns.pad_before);
    for (int64_t x = 0; x < end; ++x) {
      T* pixel = to + (x + g.columns.pad_before) * width;
      const T* source = from + x * g.channels;
      if (multiplier == 1) {
        std::copy_n(source, g.channels, pixel);
      } else {
        for (int64_t i = 0; i < g.filters; ++i) pixel[i] = source[i / multiplier];
      }
    }
  }
  void spread_band(const T* image, int64_t begin, int64_t end, T* to) const {
    const int64_t first = begin * g.rows.stride - g.rows.pad_before;
    const int64_t count = (end - begin - 1) * g.rows.stride + g.rows.extent();
    for (int64_t i = 0; i < count; ++i) spread_row(image, first + i, to + i * band_columns * width);
  }
  void pad_filter(const T* filter, T* to) const {
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      std::copy_n(filter + tap * g.filters, g.filters, to + tap * width);
      std::fill(to + tap * width + g.filters, to + (tap + 1) * width, T(0));
    }
  }
};

template <class T>
TN_INLINE void store_channels(T* to, Vec<T> v, int64_t count) {
  if (count >= kLanes<T>) {
    store(to, v);
  } else {
    store_part(to, v, count);
  }
}

template <class T>
class DepthwiseForward final : public ConvAlgorithm<T> {
 public:
  explicit DepthwiseForward(const ConvGeometry& g) : d_(g) {
    constexpr int64_t kMaxChunks = 64;
    const double row = static_cast<double>(g.columns.output * g.taps() * d_.width);
    band_ = std::clamp<int64_t>(static_cast<int64_t>(262144 / row),
                                std::min<int64_t>(g.rows.output, 2 * g.rows.taps), g.rows.output);
    bands_ = (g.rows.output + band_ - 1) / band_;
    per_chunk_ = std::max<int64_t>((g.batch * bands_ + kMaxChunks - 1) / kMaxChunks, 1);
    chunks_ = (g.batch * bands_ + per_chunk_ - 1) / per_chunk_;
    filter_elements_ = aligned(g.taps() * d_.width);
    this->scratch_bytes =
        static_cast<size_t>(filter_elements_ + chunks_ * d_.band_elements(band_)) * sizeof(T);
    this->cost_ns = d_.work() / kLanes<T> * 0.5;
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    const ConvGeometry& g = d_.g;
    T* const filter = reinterpret_cast<T*>(scratch);
    d_.pad_filter(b, filter);
    c.run_chunks(chunks_, this->cost_ns, [&](int64_t chunk) {
      T* const band = filter + filter_elements_ + chunk * d_.band_elements(band_);
      const int64_t end = std::min(g.batch * bands_, (chunk + 1) * per_chunk_);
      for (int64_t unit = chunk * per_chunk_; unit < end; ++unit) {
        const int64_t image = unit / bands_, first = unit % bands_ * band_;
        const int64_t last = std::min(g.rows.output, first + band_);
        d_.spread_band(a + image * g.input_pixels() * g.channels, first, last, band);
        for (int64_t y = first; y < last; ++y) {
          convolve_row(band + (y - first) * g.rows.stride * d_.band_columns * d_.width, filter,
                       out + (image * g.rows.output + y) * g.columns.output * g.filters);
        }
      }
    });
  }

 private:
  void convolve_row(const T* band, const T* filter, T* out) const {
    constexpr int kPixels = 4, lanes = kLanes<T>;
    const ConvGeometry& g = d_.g;
    const int64_t step = g.columns.stride * d_.width;
    for (int64_t channel = 0; channel < g.filters; channel += lanes) {
      int64_t x = 0;
      for (; x + kPixels <= g.columns.output; x += kPixels) {
        Vec<T> sum[kPixels] = {};
        taps(band + x * step + channel, filter + channel, [&](Vec<T> w, const T* from) {
          for (int i = 0; i < kPixels; ++i) sum[i] += w * load<Vec<T>>(from + i * step);
        });
        for (int i = 0; i < kPixels; ++i) {
          store_channels(out + (x + i) * g.filters + channel, sum[i], g.filters - channel);
        }
      }
      for (; x < g.columns.output; ++x) {
        Vec<T> sum{};
        taps(band + x * step + channel, filter + channel,
             [&](Vec<T> w, const T* from) { sum += w * load<Vec<T>>(from); });
        store_channels(out + x * g.filters + channel, sum, g.filters - channel);
      }
    }
  }
  template <class F>
  TN_INLINE void taps(const T* from, const T* filter, F f) const {
    const ConvGeometry& g = d_.g;
    for (int64_t r = 0; r < g.rows.taps; ++r) {
      for (int64_t s = 0; s < g.columns.taps; ++s) {
        f(load<Vec<T>>(filter + (r * g.columns.taps + s) * d_.width),
          from + (r * g.rows.dilation * d_.band_columns + s * g.columns.dilation) * d_.width);
      }
    }
  }

  Depthwise<T> d_;
  int64_t band_, bands_, per_chunk_, chunks_, filter_elements_;
};

// The gradient of the input: each output pixel adds to the pixels its window met, in a padded image
// of one block of channels; then multipliers are added up and the padding is left out.
template <class T>
class DepthwiseInput final : public ConvAlgorithm<T> {
 public:
  explicit DepthwiseInput(const ConvGeometry& g) : d_(g) {
    constexpr int64_t kMaxChunks = 64;
    // A block: whole input channels, and enough of them to fill vectors.
    block_ = std::min(g.channels, std::max<int64_t>(1, 4 * kLanes<T> / d_.multiplier));
    blocks_ = (g.channels + block_ - 1) / block_;
    width_ = (block_ * d_.multiplier + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    per_chunk_ = std::max<int64_t>((g.batch * blocks_ + kMaxChunks - 1) / kMaxChunks, 1);
    chunks_ = (g.batch * blocks_ + per_chunk_ - 1) / per_chunk_;
    image_elements_ = aligned(d_.band_rows * d_.band_columns * width_);
    filter_elements_ = aligned(g.taps() * width_);
    this->scratch_bytes =
        static_cast<size_t>(chunks_ * (image_elements_ + filter_elements_)) * sizeof(T);
    this->cost_ns = d_.work() / kLanes<T>;
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    const ConvGeometry& g = d_.g;
    c.run_chunks(chunks_, this->cost_ns, [&](int64_t chunk) {
      T* const sums = reinterpret_cast<T*>(scratch) + chunk * (image_elements_ + filter_elements_);
      T* const filter = sums + image_elements_;
      const int64_t end = std::min(g.batch * blocks_, (chunk + 1) * per_chunk_);
      for (int64_t unit = chunk * per_chunk_; unit < end; ++unit) {
        const int64_t image = unit / blocks_, first = unit % blocks_ * block_;
        const int64_t channels = std::min(block_, g.channels - first);
        const int64_t used = channels * d_.multiplier;
        for (int64_t tap = 0; tap < g.taps(); ++tap) {
          std::fill_n(filter + tap * width_, width_, T(0));
          std::copy_n(a + tap * g.filters + first * d_.multiplier, used, filter + tap * width_);
        }
        std::fill_n(sums, image_elements_, T(0));
        const T* gradient = b + image * g.output_pixels() * g.filters + first * d_.multiplier;
        for (int64_t pixel = 0; pixel < g.output_pixels(); ++pixel) {
          add_pixel(pixel / g.columns.output, pixel % g.columns.output,
                    gradient + pixel * g.filters, used, filter, sums);
        }
        fold(sums, channels, out + image * g.input_pixels() * g.channels + first);
      }
    });
  }

 private:
  void add_pixel(int64_t y, int64_t x, const T* gradient, int64_t used, const T* filter,
                 T* sums) const {
    const ConvGeometry& g = d_.g;
    T* const at = sums + (y * g.rows.stride * d_.band_columns + x * g.columns.stride) * width_;
    for (int64_t i = 0; i < used; i += kLanes<T>) {
      const int64_t count = used - i;
      const Vec<T> v =
          count >= kLanes<T> ? load<Vec<T>>(gradient + i) : load_part<Vec<T>>(gradient + i, count);
      for (int64_t r = 0; r < g.rows.taps; ++r) {
        for (int64_t s = 0; s < g.columns.taps; ++s) {
          T* to =
              at + (r * g.rows.dilation * d_.band_columns + s * g.columns.dilation) * width_ + i;
          store(to, load<Vec<T>>(to) +
                        v * load<Vec<T>>(filter + (r * g.columns.taps + s) * width_ + i));
        }
      }
    }
  }
  void fold(const T* sums, int64_t channels, T* out) const {
    const ConvGeometry& g = d_.g;
    for (int64_t y = 0; y < g.rows.input; ++y) {
      for (int64_t x = 0; x < g.columns.input; ++x) {
        T* to = out + (y * g.columns.input + x) * g.channels;
        const int64_t row = y + g.rows.pad_before, column = x + g.columns.pad_before;
        if (row >= d_.band_rows || column >= d_.band_columns) {
          std::fill_n(to, channels, T(0));  // no window reaches so far
          continue;
        }
        const T* from = sums + (row * d_.band_columns + column) * width_;
        for (int64_t i = 0; i < channels; ++i) {
          T total = from[i * d_.multiplier];
          for (int64_t m = 1; m < d_.multiplier; ++m) total += from[i * d_.multiplier + m];
          to[i] = total;
        }
      }
    }
  }

  Depthwise<T> d_;
  int64_t block_, blocks_, width_, per_chunk_, chunks_, image_elements_, filter_elements_;
};

// The gradient of the filter: per channel the sum over pixels of image times output gradient, over
// a fixed number of parts of the batch, which are added in order.
template <class T>
class DepthwiseFilter final : public ConvAlgorithm<T> {
 public:
  explicit DepthwiseFilter(const ConvGeometry& g) : d_(g) {
    parts_ = std::min<int64_t>(g.batch, 16);
    band_ = std::clamp<int64_t>(256 / g.columns.output, 1, g.rows.output);
    partial_elements_ = aligned(g.taps() * d_.width);
    gradient_elements_ = aligned(band_ * g.columns.output * d_.width);
    this->scratch_bytes = static_cast<size_t>(parts_ * (partial_elements_ + gradient_elements_ +
                                                        d_.band_elements(band_))) *
                          sizeof(T);
    this->cost_ns = d_.work() / kLanes<T> * 0.7;
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    const ConvGeometry& g = d_.g;
    T* const partials = reinterpret_cast<T*>(scratch);
    T* const buffers = partials + parts_ * partial_elements_;
    c.run_chunks(parts_, this->cost_ns, [&](int64_t part) {
      T* const band = buffers + part * (gradient_elements_ + d_.band_elements(band_));
      T* const gradient = band + d_.band_elements(band_);
      T* const sums = partials + part * partial_elements_;
      std::fill_n(sums, partial_elements_, T(0));
      for (int64_t image = g.batch * part / parts_; image < g.batch * (part + 1) / parts_;
           ++image) {
        for (int64_t y = 0; y < g.rows.output; y += band_) {
          const int64_t end = std::min(g.rows.output, y + band_);
          d_.spread_band(a + image * g.input_pixels() * g.channels, y, end, band);
          const T* from = b + (image * g.rows.output + y) * g.columns.output * g.filters;
          for (int64_t i = 0; i < (end - y) * g.columns.output; ++i) {
            std::copy_n(from + i * g.filters, g.filters, gradient + i * d_.width);
            std::fill(gradient + i * d_.width + g.filters, gradient + (i + 1) * d_.width, T(0));
          }
          for (int64_t tap = 0; tap < g.taps(); ++tap) add_tap(tap, band, gradient, end - y, sums);
        }
      }
    });
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      for (int64_t i = 0; i < g.filters; ++i) {
        T total = partials[tap * d_.width + i];
        for (int64_t part = 1; part < parts_; ++part)
          total += partials[part * partial_elements_ + tap * d_.width + i];
        out[tap * g.filters + i] = total;
      }
    }
  }

 private:
  void add_tap(int64_t tap, const T* band, const T* gradient, int64_t rows, T* sums) const {
    const ConvGeometry& g = d_.g;
    const int64_t r = tap / g.columns.taps, s = tap % g.columns.taps;
    const T* const first =
        band + (r * g.rows.dilation * d_.band_columns + s * g.columns.dilation) * d_.width;
    for (int64_t i = 0; i < d_.width; i += kLanes<T>) {
      Vec<T> sum{};
      for (int64_t y = 0; y < rows; ++y) {
        const T* x = first + y * g.rows.stride * d_.band_columns * d_.width + i;
        const T* dy = gradient + y * g.columns.output * d_.width + i;
        for (int64_t p = 0; p < g.columns.output; ++p) {
          sum +=
              load<Vec<T>>(x + p * g.columns.stride * d_.width) * load<Vec<T>>(dy + p * d_.width);
        }
      }
      T* const to = sums + tap * d_.width + i;
      store(to, load<Vec<T>>(to) + sum);
    }
  }

  Depthwise<T> d_;
  int64_t parts_, band_, partial_elements_, gradient_elements_;
};

}  // namespace

template <class T>
ConvPtr<T> depthwise_pass(ConvPass pass, const ConvGeometry& g) {
  switch (pass) {
    case ConvPass::kForward:
      return std::make_unique<DepthwiseForward<T>>(g);
    case ConvPass::kInput:
      return std::make_unique<DepthwiseInput<T>>(g);
    case ConvPass::kFilter:
      return std::make_unique<DepthwiseFilter<T>>(g);
  }
  return nullptr;
}
template ConvPtr<float> depthwise_pass(ConvPass, const ConvGeometry&);
template ConvPtr<double> depthwise_pass(ConvPass, const ConvGeometry&);

}  // namespace treenail::cpu
