// SPDX-License-Identifier: Apache-2.0
// The gradient of the filter by direct convolution: for each filter row, (taps x channels) by
// filters, summed over pixels. Both operands of a block of pixels stay in the nearest caches: the
// padded bands of the image's planes, read in place, and the output gradient, packed a panel at a
// time. Output planes are cut into a fixed number of parts whose sums are added in order.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/simd/aligned.h"

namespace treenail::cpu {
namespace {

template <class T>
class DirectFilter final : public ConvAlgorithm<T> {
 public:
  explicit DirectFilter(const ConvGeometry& g) : g_(g) {
    constexpr int64_t kBlockPixels = 256, kParts = 16, kPartialElements = 1 << 22;
    band_ = std::clamp<int64_t>(kBlockPixels / g.columns.output, 1, g.rows.output);
    const int64_t panels = (g.filters + kMicroColumns<T> - 1) / kMicroColumns<T>;
    planes_ = g.batch * g.planes.output;
    parts_ =
        std::clamp<int64_t>(kPartialElements / g.filter_elements(), 1, std::min(kParts, planes_));
    groups_ = std::clamp<int64_t>(kParts / parts_, 1, panels);
    group_columns_ = (panels + groups_ - 1) / groups_ * kMicroColumns<T>;
    groups_ = (g.filters + group_columns_ - 1) / group_columns_;
    band_elements_ = aligned(band_elements(g, band_));
    panel_elements_ = aligned(band_ * g.columns.output * kMicroColumns<T>);
    buffer_elements_ = checked_product(band_elements_, g.planes.taps) + panel_elements_;
    partial_elements_ = parts_ > 1 ? aligned(g.filter_elements()) : 0;
    this->scratch_bytes =
        static_cast<size_t>(parts_ * partial_elements_ + parts_ * groups_ * buffer_elements_) *
        sizeof(T);
    this->cost_ns = 1.1 * g.multiply_adds() / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    T* const partials = reinterpret_cast<T*>(scratch);
    T* const buffers = partials + parts_ * partial_elements_;
    c.run_chunks(parts_ * groups_, this->cost_ns, [&](int64_t chunk) {
      const int64_t part = chunk / groups_, group = chunk % groups_;
      T* const buffer = buffers + chunk * buffer_elements_;
      T* const to = parts_ > 1 ? partials + part * partial_elements_ : out;
      bool first = g_.planes.taps == 1;
      if (!first) clear(group, to);  // the first plane need not meet every tap
      for (int64_t plane = planes_ * part / parts_; plane < planes_ * (part + 1) / parts_;
           ++plane) {
        const T* image = a + plane / g_.planes.output * g_.input_pixels() * g_.channels;
        for (int64_t y = 0; y < g_.rows.output; y += band_) {
          const Block block(g_, image, plane % g_.planes.output, y,
                            std::min(g_.rows.output, y + band_), buffer + panel_elements_,
                            band_elements_);
          add_block(block, b + (plane * g_.rows.output + y) * g_.columns.output * g_.filters, group,
                    buffer, to, !first);
          first = false;
        }
      }
    });
    if (parts_ > 1) add_partials(c, partials, out);
  }

 private:
  // A band of rows of one output plane, and the padded bands of the input planes that it meets.
  struct Block {
    const ConvGeometry& g;
    const T* image;
    int64_t plane, begin, end;
    T* copies;
    int64_t copy_elements, row_stride = 0;

    Block(const ConvGeometry& g, const T* image, int64_t plane, int64_t begin, int64_t end,
          T* copies, int64_t copy_elements)
        : g(g),
          image(image),
          plane(plane),
          begin(begin),
          end(end),
          copies(copies),
          copy_elements(copy_elements) {
      if (copy_elements == 0) return;
      for (int64_t tap = 0; tap < g.planes.taps; ++tap) {
        if (plane_of_tap(g, plane, tap) >= 0) row_stride = read(tap).row_stride;
      }
    }
    Band<T> read(int64_t tap) const {
      const int64_t from = plane_of_tap(g, plane, tap);
      return padded_band(g, image + from * g.input_plane() * g.channels, begin, end,
                         copies + tap * copy_elements);
    }
    // Of a tap that meets a plane.
    Band<T> band(int64_t tap) const {
      return copy_elements == 0 ? read(tap) : Band<T>{copies + tap * copy_elements, row_stride};
    }
  };

  void clear(int64_t group, T* to) const {
    const int64_t first = group * group_columns_;
    const int64_t count = std::min(g_.filters, first + group_columns_) - first;
    for (int64_t k = 0; k < g_.taps() * g_.channels; ++k)
      std::fill_n(to + k * g_.filters + first, count, T(0));
  }

  // Adds the block's pixels to the columns of one group.
  void add_block(const Block& block, const T* gradient, int64_t group, T* panel, T* to,
                 bool add) const {
    const int64_t pixels = (block.end - block.begin) * g_.columns.output;
    const int64_t end = std::min(g_.filters, (group + 1) * group_columns_);
    for (int64_t o = group * group_columns_; o < end; o += kMicroColumns<T>) {
      const int64_t columns = std::min<int64_t>(kMicroColumns<T>, end - o);
      pack_panels(gradient + o, g_.filters, pixels, columns, panel);
      for (int64_t tap = 0; tap < g_.planes.taps; ++tap) {
        if (plane_of_tap(g_, block.plane, tap) < 0) continue;
        add_plane(block.band(tap), block.end - block.begin, panel, columns,
                  to + tap * g_.plane_taps() * g_.channels * g_.filters + o, add);
      }
    }
  }

  // One panel of the filter's plane `to`.
  void add_plane(const Band<T>& band, int64_t rows, const T* panel, int64_t columns, T* to,
                 bool add) const {
    for (int64_t r = 0; r < g_.rows.taps; ++r) {
      const T* line = band.first + r * g_.rows.dilation * band.row_stride;
      T* const row = to + r * g_.columns.taps * g_.channels * g_.filters;
      if (g_.columns.dilation == 1) {
        add_run(line, g_.columns.taps * g_.channels, band.row_stride, rows, panel, columns, row,
                add);
        continue;
      }
      for (int64_t s = 0; s < g_.columns.taps; ++s) {
        add_run(line + s * g_.columns.dilation * g_.channels, g_.channels, band.row_stride, rows,
                panel, columns, row + s * g_.channels * g_.filters, add);
      }
    }
  }

  // `count` contiguous rows of the filter's matrix, one panel.
  void add_run(const T* from, int64_t count, int64_t row_stride, int64_t rows, const T* panel,
               int64_t columns, T* to, bool add) const {
    MicroKernelCall<T> t{};
    t.depth = g_.columns.output;
    t.segments = rows;
    t.a_segment = g_.rows.stride * row_stride;
    t.a_row = 1;
    t.a_step = g_.columns.stride * g_.channels;
    t.b = panel;
    t.ldb = kMicroColumns<T>;
    t.ldc = g_.filters;
    t.add = add;
    const int64_t most = micro_rows<T>(columns), tiles = (count + most - 1) / most,
                  step = (count + tiles - 1) / tiles;
    for (int64_t i = 0; i < count; i += step) {
      t.a = from + i;
      t.c = to + i * g_.filters;
      run_micro_kernel(std::min(step, count - i), columns, t);
    }
  }

  void add_partials(const RunContext& c, const T* partials, T* out) const {
    constexpr int64_t kGrain = 4096;
    c.parallel_for(g_.filter_elements(), kGrain, 0.1 * static_cast<double>(parts_),
                   [&](int64_t begin, int64_t end) {
                     std::copy(partials + begin, partials + end, out + begin);
                     for (int64_t part = 1; part < parts_; ++part) {
                       const T* from = partials + part * partial_elements_;
                       for (int64_t i = begin; i < end; ++i) out[i] += from[i];
                     }
                   });
  }

  ConvGeometry g_;
  int64_t band_, planes_, parts_, groups_, group_columns_, band_elements_, panel_elements_,
      buffer_elements_, partial_elements_;
};

}  // namespace

template <class T>
ConvPtr<T> direct_filter(const ConvGeometry& g) {
  return std::make_unique<DirectFilter<T>>(g);
}
template ConvPtr<float> direct_filter(const ConvGeometry&);
template ConvPtr<double> direct_filter(const ConvGeometry&);

}  // namespace treenail::cpu
