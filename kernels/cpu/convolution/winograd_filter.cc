// SPDX-License-Identifier: Apache-2.0
// The gradient of the filter by Winograd's algorithm, the adjoint of the forward pass:
//   d filter = G^T [ sum over tiles of (B^T input B) . (A d_output A^T) ] G
// Batches of tiles are transformed, then one product per point adds them to its sums: no two
// threads add to one number.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/convolution/winograd_tiles.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/simd/aligned.h"

namespace treenail::cpu {
namespace {

template <int kOut, int kTaps>
class WinogradFilter final : public ConvAlgorithm<float> {
 public:
  using W = Winograd<kOut, kTaps>;

  explicit WinogradFilter(const ConvGeometry& g) : g_(g) {
    constexpr int64_t kBatchTiles = 256;
    grid_ = {g.batch, (g.rows.output + kOut - 1) / kOut, (g.columns.output + kOut - 1) / kOut};
    tiles_ = std::min(kBatchTiles, grid_.tiles());
    per_chunk_ = std::max<int64_t>(4, (tiles_ + Workspaces::kMost - 1) / Workspaces::kMost);
    sum_elements_ = aligned(W::kPoints * g.channels * g.filters);
    input_elements_ = aligned(W::kPoints * point_step(tiles_, g.channels));
    gradient_elements_ = aligned(W::kPoints * point_step(tiles_, g.filters));
    edge_elements_ = aligned(W::kPoints * std::max(g.channels, g.filters));
    const int64_t workspaces = (tiles_ + per_chunk_ - 1) / per_chunk_;
    this->scratch_bytes = static_cast<size_t>(sum_elements_ + input_elements_ + gradient_elements_ +
                                              workspaces * edge_elements_) *
                          sizeof(float);
    work_ = W::kPoints * static_cast<double>(g.channels * g.filters) / product_rate<float>();
    this->cost_ns = 1.3 * static_cast<double>(grid_.tiles()) * work_;
  }

  void run(const RunContext& c, const float* a, const float* b, float* out,
           std::byte* scratch) const override {
    float* const sums = reinterpret_cast<float*>(scratch);
    float* const inputs = sums + sum_elements_;
    float* const gradients = inputs + input_elements_;
    float* const edges = gradients + gradient_elements_;
    for (int64_t first = 0; first < grid_.tiles(); first += tiles_) {
      const int64_t count = std::min(tiles_, grid_.tiles() - first);
      transform(c, a, b, first, count, inputs, gradients, edges);
      add_products(c, count, first > 0, inputs, gradients, sums);
    }
    transform_back(c, sums, out);
  }

 private:
  void transform(const RunContext& c, const float* a, const float* b, int64_t first, int64_t count,
                 float* inputs, float* gradients, float* edges) const {
    const ImageView images = {a, g_.rows.input, g_.columns.input, g_.channels};
    const ImageView results = {b, g_.rows.output, g_.columns.output, g_.filters};
    const int64_t in_step = point_step(tiles_, g_.channels),
                  out_step = point_step(tiles_, g_.filters);
    Workspaces workspaces;
    const double cost = 0.4 * W::kPoints * static_cast<double>(count * (g_.channels + g_.filters));
    c.run_chunks((count + per_chunk_ - 1) / per_chunk_, cost, [&](int64_t chunk) {
      const Workspaces::Use use(workspaces);
      float* const edge = edges + use.index() * edge_elements_;
      const int64_t end = std::min(count, (chunk + 1) * per_chunk_);
      for (int64_t t = chunk * per_chunk_; t < end; ++t) {
        int64_t image, row, column;
        grid_.locate(first + t, image, row, column);
        const int64_t y = row * kOut, x = column * kOut;
        const Square in = square_at(images, image, y - g_.rows.pad_before,
                                    x - g_.columns.pad_before, W::kSize, edge);
        for (int64_t i = 0; i < g_.channels; i += kLanes<float>) {
          W::template square_to_points<W::bt, W::kSize>(
              in.first + i, in.row, in.column, inputs + panel_offset(tiles_, t, i), in_step);
        }
        const Square out = square_at(results, image, y, x, kOut, edge);
        for (int64_t o = 0; o < g_.filters; o += kLanes<float>) {
          W::template square_to_points<W::a, kOut>(
              out.first + o, out.row, out.column, gradients + panel_offset(tiles_, t, o), out_step);
        }
      }
    });
  }

  // Sums [point][channels][filters].
  void add_products(const RunContext& c, int64_t count, bool add, const float* inputs,
                    const float* gradients, float* sums) const {
    const int64_t in_step = point_step(tiles_, g_.channels),
                  out_step = point_step(tiles_, g_.filters);
    c.parallel_for(W::kPoints, 1, static_cast<double>(count) * work_ / W::kPoints,
                   [&](int64_t point, int64_t end) {
                     MicroKernelCall<float> t{};
                     t.depth = count;
                     t.a_row = 1;
                     t.a_step = kPanel;
                     t.ldb = kPanel;
                     t.ldc = g_.filters;
                     t.add = add;
                     for (; point < end; ++point) {
                       float* const to = sums + point * g_.channels * g_.filters;
                       for (int64_t o = 0; o < g_.filters; o += kPanel) {
                         t.b = gradients + point * out_step + o * tiles_;
                         for (int64_t i = 0; i < g_.channels; i += kPanel) {
                           rows_of_panel(inputs + point * in_step + i * tiles_,
                                         to + i * g_.filters + o, t);
                         }
                       }
                     }
                   });
  }

  // The kPanel channels of one panel in register tiles as even as they come.
  void rows_of_panel(const float* panel, float* to, MicroKernelCall<float>& t) const {
    constexpr int64_t tiles = (kPanel + kMicroRows - 1) / kMicroRows;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t begin = kPanel * i / tiles, end = kPanel * (i + 1) / tiles;
      t.a = panel + begin;
      t.c = to + begin * g_.filters;
      run_micro_kernel(end - begin, kPanel, t);
    }
  }

  void transform_back(const RunContext& c, const float* sums, float* out) const {
    const int64_t step = g_.channels * g_.filters;
    c.parallel_for(g_.channels, 4, 0.5 * W::kPoints * static_cast<double>(g_.filters),
                   [&](int64_t i, int64_t end) {
                     for (; i < end; ++i) {
                       for (int64_t o = 0; o < g_.filters; o += kLanes<float>) {
                         const int64_t at = i * g_.filters + o;
                         W::template square_from_points<W::gt, kTaps>(
                             sums + at,
                             step, [&](int r, int s, VecF v) __attribute__((always_inline)) {
                               store(out + (r * kTaps + s) * step + at, v);
                             });
                       }
                     }
                   });
  }

  ConvGeometry g_;
  TileGrid grid_;
  int64_t tiles_, per_chunk_, sum_elements_, input_elements_, gradient_elements_, edge_elements_;
  double work_;
};

}  // namespace

ConvPtr<float> winograd_filter(const ConvGeometry& g) {
  if (g.rows.taps == 3) return std::make_unique<WinogradFilter<4, 3>>(g);
  return std::make_unique<WinogradFilter<4, 5>>(g);
}

}  // namespace treenail::cpu
