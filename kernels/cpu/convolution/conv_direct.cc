// SPDX-License-Identifier: Apache-2.0
// Direct convolution as a matrix product that never builds its left matrix: with channels last, the
// taps of one filter row are contiguous in the image, so a tile of neighbouring output pixels reads
// them in place. Filters are packed into panels once per run. The gradient of the input is the same
// convolution with flipped filters where the stride is 1, and is added up tap by tap elsewhere.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/simd/aligned.h"

namespace treenail::cpu {
namespace {

constexpr int64_t kMaxChunks = 64;

template <class T>
int64_t panels(int64_t columns) {
  return (columns + kMicroColumns<T> - 1) / kMicroColumns<T>;
}

// Output pixels of one row per tile: as even as possible, a tile of one row would wait for its own
// results.
template <class T>
int64_t pixels_per_tile(int64_t width, int64_t columns) {
  const int64_t most = micro_rows<T>(columns);
  const int64_t tiles = (width + most - 1) / most;
  return (width + tiles - 1) / tiles;
}

// Both kinds of panels for a filter [taps, channels, filters]; k counts taps and, within one, what
// is summed over.
template <class T>
void pack_forward(const RunContext& c, const ConvGeometry& g, const T* filter, T* packed) {
  const int64_t k = g.taps() * g.channels;
  c.parallel_for(panels<T>(g.filters), 1, 0.3 * static_cast<double>(k * kMicroColumns<T>),
                 [&](int64_t p, int64_t end) {
                   for (; p < end; ++p) {
                     const int64_t o = p * kMicroColumns<T>;
                     pack_panels(filter + o, g.filters, k,
                                 std::min<int64_t>(kMicroColumns<T>, g.filters - o),
                                 packed + p * k * kMicroColumns<T>);
                   }
                 });
}

// Panels over input channels; `flip` turns the order of the taps around.
template <class T>
void pack_backward(const RunContext& c, const ConvGeometry& g, const T* filter, bool flip,
                   T* packed) {
  const int64_t taps = g.taps(), step = g.filters * kMicroColumns<T>;
  c.parallel_for(
      panels<T>(g.channels), 1, 0.5 * static_cast<double>(taps * step),
      [&](int64_t p, int64_t end) {
        for (; p < end; ++p) {
          const int64_t first = p * kMicroColumns<T>;
          const int64_t columns = std::min<int64_t>(kMicroColumns<T>, g.channels - first);
          for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t from = flip ? taps - 1 - tap : tap;
            pack_panel_transposed(filter + (from * g.channels + first) * g.filters, g.filters,
                                  g.filters, columns, packed + (p * taps + tap) * step);
          }
        }
      });
}

// How the images are shared out: a unit is a band of rows of one output plane; a chunk takes units
// one after the other and owns one padded band. By shape alone.
struct Units {
  int64_t band, bands, planes, units, per_chunk, chunks;
  explicit Units(const ConvGeometry& g) {
    constexpr double kUnitWork = 1 << 20;  // multiply-adds
    const double row = std::max(
        1.0, static_cast<double>(g.columns.output) * static_cast<double>(g.filter_elements()));
    const int64_t wanted = static_cast<int64_t>(std::clamp(kUnitWork / row, 1.0, 1e9));
    // At least a few rows, so that the rows around a band are not copied too often.
    band = std::min(g.rows.output, std::max<int64_t>(wanted, 2 * g.rows.taps));
    bands = (g.rows.output + band - 1) / band;
    band = (g.rows.output + bands - 1) / bands;
    bands = (g.rows.output + band - 1) / band;
    planes = g.planes.output * bands;
    units = g.batch * planes;
    per_chunk =
        std::max<int64_t>(1, static_cast<int64_t>(kUnitWork / (row * static_cast<double>(band))));
    per_chunk = std::max(per_chunk, (units + kMaxChunks - 1) / kMaxChunks);
    chunks = (units + per_chunk - 1) / per_chunk;
  }
};

template <class T>
class DirectForward final : public ConvAlgorithm<T> {
 public:
  // `g` is the convolution computed. With `original` the filter is that of another one, of which
  // this is the gradient of the input: flipped, channels exchanged.
  DirectForward(const ConvGeometry& g, const ConvGeometry* original)
      : g_(g),
        original_(original != nullptr ? *original : g),
        flipped_(original != nullptr),
        units_(g),
        filter_elements_(aligned(panels<T>(g.filters) * g.taps() * g.channels * kMicroColumns<T>)),
        band_elements_(aligned(band_elements(g, units_.band))) {
    this->scratch_bytes =
        static_cast<size_t>(filter_elements_ + units_.chunks * band_elements_) * sizeof(T);
    this->cost_ns = g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    T* const packed = reinterpret_cast<T*>(scratch);
    if (flipped_) {
      pack_backward(c, original_, a, true, packed);
    } else {
      pack_forward(c, g_, b, packed);
    }
    const T* images = flipped_ ? b : a;
    c.run_chunks(units_.chunks, this->cost_ns, [&](int64_t chunk) {
      T* const copy = packed + filter_elements_ + chunk * band_elements_;
      const int64_t end = std::min(units_.units, (chunk + 1) * units_.per_chunk);
      for (int64_t unit = chunk * units_.per_chunk; unit < end; ++unit) {
        const int64_t plane = unit / units_.bands, row = unit % units_.bands * units_.band;
        const int64_t last = std::min(g_.rows.output, row + units_.band);
        const T* image = images + plane / g_.planes.output * g_.input_pixels() * g_.channels;
        const int64_t line = g_.columns.output * g_.filters, first = plane * g_.rows.output;
        band_of_plane(image, plane % g_.planes.output, row, last, packed, copy,
                      out + (first + row) * line);
      }
    });
  }

 private:
  // Rows [row, end) of output plane `plane`: the sum over the input planes that it meets.
  void band_of_plane(const T* image, int64_t plane, int64_t row, int64_t end, const T* packed,
                     T* copy, T* out) const {
    bool add = false;
    for (int64_t tap = 0; tap < g_.planes.taps; ++tap) {
      const int64_t from = plane_of_tap(g_, plane, tap);
      if (from < 0) continue;
      const Band<T> band =
          padded_band(g_, image + from * g_.input_plane() * g_.channels, row, end, copy);
      convolve(band, packed, tap, end - row, add, out);
      add = true;
    }
    if (!add) std::fill_n(out, (end - row) * g_.columns.output * g_.filters, T(0));
  }

  void convolve(const Band<T>& band, const T* packed, int64_t tap, int64_t rows, bool add,
                T* out) const {
    const int64_t plane_k = g_.plane_taps() * g_.channels, k = g_.planes.taps * plane_k;
    const int64_t width = g_.columns.output;
    for (int64_t o = 0; o < g_.filters; o += kMicroColumns<T>) {
      const T* const panel = packed + o * k + tap * plane_k * kMicroColumns<T>;
      const int64_t columns = std::min<int64_t>(kMicroColumns<T>, g_.filters - o);
      const int64_t step = pixels_per_tile<T>(width, columns);
      for (int64_t y = 0; y < rows; ++y) {
        const T* const line = band.first + y * g_.rows.stride * band.row_stride;
        for (int64_t x = 0; x < width; x += step) {
          pixels(line + x * g_.columns.stride * g_.channels, band.row_stride, panel,
                 std::min(step, width - x), columns, add, out + (y * width + x) * g_.filters + o);
        }
      }
    }
  }

  // One tile: some pixels of a row, one panel of filters.
  void pixels(const T* from, int64_t row_stride, const T* panel, int64_t count, int64_t columns,
              bool add, T* out) const {
    MicroKernelCall<T> t{};
    t.add = add;
    t.a_row = g_.columns.stride * g_.channels;
    t.a_step = 1;
    t.ldb = kMicroColumns<T>;
    t.c = out;
    t.ldc = g_.filters;
    if (g_.columns.dilation == 1 || g_.columns.taps == 1) {
      t.depth = g_.columns.taps * g_.channels;
      t.segments = g_.rows.taps;
      t.a_segment = g_.rows.dilation * row_stride;
      t.a = from;
      t.b = panel;
      run_micro_kernel(count, columns, t);
      return;
    }
    t.depth = g_.channels;
    t.segments = g_.columns.taps;
    t.a_segment = g_.columns.dilation * g_.channels;
    for (int64_t r = 0; r < g_.rows.taps; ++r) {
      t.a = from + r * g_.rows.dilation * row_stride;
      t.b = panel + r * g_.columns.taps * g_.channels * kMicroColumns<T>;
      t.add = add || r > 0;
      run_micro_kernel(count, columns, t);
    }
  }

  ConvGeometry g_, original_;
  bool flipped_;
  Units units_;
  int64_t filter_elements_, band_elements_;
};

// The gradient of the input, for strides: each tap adds a product to the pixels it met. A chunk is
// one image's channels of one panel: nobody else writes there.
template <class T>
class ScatterInput final : public ConvAlgorithm<T> {
 public:
  explicit ScatterInput(const ConvGeometry& g) : g_(g) {
    this->scratch_bytes =
        static_cast<size_t>(panels<T>(g.channels) * g.taps() * g.filters * kMicroColumns<T>) *
        sizeof(T);
    this->cost_ns = 1.3 * g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    T* const packed = reinterpret_cast<T*>(scratch);
    pack_backward(c, g_, a, false, packed);
    const int64_t count = panels<T>(g_.channels);
    c.run_chunks(g_.batch * count, this->cost_ns, [&](int64_t chunk) {
      const int64_t image = chunk / count, p = chunk % count;
      const int64_t first = p * kMicroColumns<T>;
      T* const to = out + image * g_.input_pixels() * g_.channels + first;
      const int64_t columns = std::min<int64_t>(kMicroColumns<T>, g_.channels - first);
      for (int64_t i = 0; i < g_.input_pixels(); ++i)
        std::fill_n(to + i * g_.channels, columns, T(0));
      for (int64_t tap = 0; tap < g_.taps(); ++tap) {
        add_tap(tap, b + image * g_.output_pixels() * g_.filters,
                packed + (p * g_.taps() + tap) * g_.filters * kMicroColumns<T>, columns, to);
      }
    });
  }

 private:
  void add_tap(int64_t tap, const T* gradient, const T* panel, int64_t columns, T* to) const {
    const WindowAxis &rows = g_.rows, &cols = g_.columns;
    const int64_t q = tap / g_.plane_taps(), r = tap / cols.taps % rows.taps, s = tap % cols.taps;
    int64_t z0, z1, y0, y1, x0, x1;
    windows_inside(g_.planes, q, z0, z1);
    windows_inside(rows, r, y0, y1);
    windows_inside(cols, s, x0, x1);
    if (x0 >= x1) return;
    const int64_t step = pixels_per_tile<T>(x1 - x0, columns);
    MicroKernelCall<T> t{};
    t.depth = g_.filters;
    t.a_row = g_.filters;
    t.a_step = 1;
    t.b = panel;
    t.ldb = kMicroColumns<T>;
    t.ldc = cols.stride * g_.channels;
    t.add = true;
    // Lines of all planes in turn: z * rows.output + y.
    for (int64_t i = 0; i < (z1 - z0) * (y1 - y0); ++i) {
      const int64_t z = z0 + i / (y1 - y0), y = y0 + i % (y1 - y0);
      const int64_t plane = z * g_.planes.stride + q * g_.planes.dilation - g_.planes.pad_before;
      const int64_t row =
          plane * rows.input + y * rows.stride + r * rows.dilation - rows.pad_before;
      for (int64_t x = x0; x < x1; x += step) {
        const int64_t column = x * cols.stride + s * cols.dilation - cols.pad_before;
        t.a = gradient + ((z * rows.output + y) * cols.output + x) * g_.filters;
        t.c = to + (row * cols.input + column) * g_.channels;
        run_micro_kernel(std::min(step, x1 - x), columns, t);
      }
    }
  }

  ConvGeometry g_;
};

// The convolution of the output gradient that gives the input gradient, when the stride is 1.
WindowAxis reversed(const WindowAxis& a) {
  WindowAxis b = a;
  b.input = a.output;
  b.output = a.input;
  b.pad_before = a.extent() - 1 - a.pad_before;
  b.pad_after = 0;  // what lies behind follows from the sizes
  return b;
}

}  // namespace

template <class T>
ConvPtr<T> direct_forward(const ConvGeometry& g) {
  return std::make_unique<DirectForward<T>>(g, nullptr);
}

template <class T>
ConvPtr<T> direct_input(const ConvGeometry& g) {
  if (g.plain_stride() && !padding_dominates(g) && g.rows.pad_before < g.rows.extent() &&
      g.columns.pad_before < g.columns.extent()) {
    ConvGeometry back = g;
    back.channels = g.filters;
    back.filters = g.channels;
    back.planes = reversed(g.planes);
    back.rows = reversed(g.rows);
    back.columns = reversed(g.columns);
    return std::make_unique<DirectForward<T>>(back, &g);
  }
  return std::make_unique<ScatterInput<T>>(g);
}

template ConvPtr<float> direct_forward(const ConvGeometry&);
template ConvPtr<double> direct_forward(const ConvGeometry&);
template ConvPtr<float> direct_input(const ConvGeometry&);
template ConvPtr<double> direct_input(const ConvGeometry&);

}  // namespace treenail::cpu
