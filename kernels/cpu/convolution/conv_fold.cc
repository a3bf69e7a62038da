// SPDX-License-Identifier: Apache-2.0
// The gradient of the input where the input has few channels: a tile over them would be mostly
// empty. Instead each output pixel's gradient times the whole filter, taps and channels as columns,
// is folded into the image: the taps of one filter row are contiguous there. Images are cut apart,
// so nobody else adds to the same pixels.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/simd/aligned.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
namespace {

template <class T>
class FoldInput final : public ConvAlgorithm<T> {
 public:
  explicit FoldInput(const ConvGeometry& g) : g_(g) {
    row_ = g.columns.taps * g.channels;
    unfolded_ =
        (g.taps() * g.channels + kMicroColumns<T> - 1) / kMicroColumns<T> * kMicroColumns<T>;
    height_ = (g.rows.output - 1) * g.rows.stride + g.rows.extent();
    width_ = (g.columns.output - 1) * g.columns.stride + g.columns.taps;
    filter_elements_ = aligned(unfolded_ * g.filters);
    line_elements_ = aligned(g.columns.output * unfolded_);
    image_elements_ = aligned(height_ * width_ * g.channels);
    constexpr double kChunkWork = 1 << 20;
    const double image = static_cast<double>(g.output_pixels() * unfolded_ * g.filters);
    per_chunk_ = static_cast<int64_t>(std::clamp(kChunkWork / image, 1.0, 1e6));
    per_chunk_ = std::max(per_chunk_, (g.batch + Workspaces::kMost - 1) / Workspaces::kMost);
    chunks_ = (g.batch + per_chunk_ - 1) / per_chunk_;
    this->scratch_bytes =
        static_cast<size_t>(filter_elements_ + chunks_ * (line_elements_ + image_elements_)) *
        sizeof(T);
    this->cost_ns = 1.5 * static_cast<double>(g.batch) * image / product_rate<T>();
  }

  void run(const RunContext& c, const T* a, const T* b, T* out, std::byte* scratch) const override {
    T* const filter = reinterpret_cast<T*>(scratch);
    for (int64_t i = 0; i < g_.taps() * g_.channels; i += kMicroColumns<T>) {
      pack_panel_transposed(a + i * g_.filters, g_.filters, g_.filters,
                            std::min<int64_t>(kMicroColumns<T>, g_.taps() * g_.channels - i),
                            filter + i * g_.filters);
    }
    Workspaces workspaces;
    c.run_chunks(chunks_, this->cost_ns, [&](int64_t chunk) {
      const Workspaces::Use use(workspaces);
      T* const line = filter + filter_elements_ + use.index() * (line_elements_ + image_elements_);
      T* const folded = line + line_elements_;
      const int64_t end = std::min(g_.batch, (chunk + 1) * per_chunk_);
      for (int64_t image = chunk * per_chunk_; image < end; ++image) {
        std::fill_n(folded, image_elements_, T(0));
        for (int64_t y = 0; y < g_.rows.output; ++y) {
          unfold_row(b + (image * g_.rows.output + y) * g_.columns.output * g_.filters, filter,
                     line);
          fold_row(line, folded + y * g_.rows.stride * width_ * g_.channels);
        }
        copy_out(folded, out + image * g_.input_pixels() * g_.channels);
      }
    });
  }

 private:
  // [output pixels of a row, filters] times [filters, taps * channels].
  void unfold_row(const T* gradient, const T* filter, T* line) const {
    MicroKernelCall<T> t{};
    t.depth = g_.filters;
    t.a_row = g_.filters;
    t.a_step = 1;
    t.ldb = kMicroColumns<T>;
    t.ldc = unfolded_;
    const int64_t width = g_.columns.output, tiles = (width + kMicroRows - 1) / kMicroRows;
    const int64_t step = (width + tiles - 1) / tiles;
    for (int64_t i = 0; i < unfolded_; i += kMicroColumns<T>) {
      t.b = filter + i * g_.filters;
      for (int64_t x = 0; x < width; x += step) {
        t.a = gradient + x * g_.filters;
        t.c = line + x * unfolded_ + i;
        run_micro_kernel(std::min(step, width - x), kMicroColumns<T>, t);
      }
    }
  }

  void fold_row(const T* line, T* folded) const {
    const int64_t count = row_, step = g_.columns.stride * g_.channels;
    for (int64_t r = 0; r < g_.rows.taps; ++r) {
      T* const to = folded + r * g_.rows.dilation * width_ * g_.channels;
      for (int64_t x = 0; x < g_.columns.output; ++x) {
        const T* from = line + x * unfolded_ + r * count;
        T* const at = to + x * step;
        for (int64_t i = 0; i < count; ++i) at[i] += from[i];
      }
    }
  }

  void copy_out(const T* folded, T* out) const {
    const int64_t n = g_.channels, row = g_.columns.input * n;
    const int64_t left = std::min(g_.columns.pad_before, width_);
    const int64_t inside = std::min(g_.columns.input, width_ - left);
    for (int64_t y = 0; y < g_.rows.input; ++y) {
      const int64_t from = y + g_.rows.pad_before;
      const int64_t reached = from < height_ ? inside : 0;
      if (reached > 0) {
        std::memcpy(out + y * row, folded + (from * width_ + left) * n,
                    static_cast<size_t>(reached * n) * sizeof(T));
      }
      std::fill(out + y * row + reached * n, out + (y + 1) * row,
                T(0));  // no window reaches so far
    }
  }

  ConvGeometry g_;
  int64_t row_, unfolded_, height_, width_, filter_elements_, line_elements_, image_elements_,
      per_chunk_, chunks_;
};

}  // namespace

template <class T>
bool prefer_fold(const ConvGeometry& g) {
  return g.columns.dilation == 1 && g.channels < kMicroColumns<T>;
}
template <class T>
ConvPtr<T> fold_input(const ConvGeometry& g) {
  return std::make_unique<FoldInput<T>>(g);
}
template bool prefer_fold<float>(const ConvGeometry&);
template bool prefer_fold<double>(const ConvGeometry&);
template ConvPtr<float> fold_input(const ConvGeometry&);
template ConvPtr<double> fold_input(const ConvGeometry&);

}  // namespace treenail::cpu
