// SPDX-License-Identifier: Apache-2.0
// Convolution of stride 1 by Winograd's algorithm, and the gradient of its input, which is the same
// with flipped filters. By tiles: all filters are transformed, then a group of tiles goes through
// transform, one matrix product per point, and back while it stays in the second-level cache. By
// filters, where there are many and few tiles: all tiles are transformed, then some filters at a
// time go the same way, so that the transformed filters, four times the filters' size, never go
// through memory. In volumes each plane is transformed on its own and the planes of a window follow
// each other in the product, like more channels.
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

constexpr int64_t kGroup = 24;  // tiles; a multiple of every level's kMicroRows
static_assert(kGroup % kMicroRows == 0);
// By filters: so many transformed filters that no near cache holds them, and so few tiles that all
// of them take no more room than filters do.
constexpr int64_t kManyFilterBytes = 8 << 20;
constexpr int64_t kFewTiles = 64;
static_assert(kFewTiles <= Workspaces::kMost);
constexpr int64_t kFilterBlockBytes = 256 << 10;  // transformed filters that stay in L2

template <int kOut, int kTaps>
class WinogradForward final : public ConvAlgorithm<float> {
 public:
  using W = Winograd<kOut, kTaps>;

  // `g`: the forward convolution; with `backward` its input gradient is computed.
  WinogradForward(const ConvGeometry& g, bool backward) : backward_(backward) {
    channels_ = backward ? g.filters : g.channels;
    filters_ = backward ? g.channels : g.filters;
    const WindowAxis &p = g.planes, &r = g.rows, &c = g.columns;
    plane_taps_ = p.taps;
    depth_ = plane_taps_ * channels_;
    in_planes_ = backward ? p.output : p.input;
    out_planes_ = backward ? p.input : p.output;
    front_ = backward ? p.taps - 1 - p.pad_before : p.pad_before;
    in_height_ = backward ? r.output : r.input;
    in_width_ = backward ? c.output : c.input;
    out_height_ = backward ? r.input : r.output;
    out_width_ = backward ? c.input : c.output;
    top_ = backward ? kTaps - 1 - r.pad_before : r.pad_before;
    left_ = backward ? kTaps - 1 - c.pad_before : c.pad_before;
    grid_ = {g.batch * out_planes_, (out_height_ + kOut - 1) / kOut,
             (out_width_ + kOut - 1) / kOut};
    by_filters_ =
        grid_.tiles() <= kFewTiles && W::kPoints * depth_ * filters_ * 4 > kManyFilterBytes;
    if (by_filters_) {
      cut_filters();
    } else {
      cut_tiles();
    }
    this->scratch_bytes =
        static_cast<size_t>(shared_elements_ + chunks_ * workspace()) * sizeof(float);
    this->cost_ns = 1.3 * static_cast<double>(grid_.tiles()) * W::kPoints *
                    static_cast<double>(depth_ * filters_) / product_rate<float>();
  }

  void run(const RunContext& c, const float* a, const float* b, float* out,
           std::byte* scratch) const override {
    float* const shared = reinterpret_cast<float*>(scratch);
    const float* const filter = backward_ ? a : b;
    const ImageView images = {backward_ ? b : a, in_height_, in_width_, channels_};
    if (by_filters_) {
      run_by_filters(c, images, filter, shared, out);
    } else {
      run_by_tiles(c, images, filter, shared, out);
    }
  }

 private:
  // What chunks share (transformed filters, or transformed tiles), and what each has of its own.
  int64_t workspace() const { return block_elements_ + result_elements_ + edge_elements_; }

  void cut_tiles() {
    group_ = std::min(kGroup, grid_.tiles());
    const int64_t groups = (grid_.tiles() + group_ - 1) / group_;
    per_chunk_ = (groups + Workspaces::kMost - 1) / Workspaces::kMost;
    chunks_ = (groups + per_chunk_ - 1) / per_chunk_;
    shared_elements_ = aligned(W::kPoints * depth_ * filters_);
    block_elements_ = aligned(W::kPoints * point_step(group_, depth_));
    result_elements_ = aligned(W::kPoints * point_step(group_, filters_));
    edge_elements_ = aligned(W::kPoints * channels_);
  }

  void cut_filters() {
    group_ = grid_.tiles();
    const int64_t panels = filters_ / kPanel;
    per_chunk_ = std::max<int64_t>((panels + Workspaces::kMost - 1) / Workspaces::kMost,
                                   std::max<int64_t>(1, 32 / kPanel));
    chunks_ = (panels + per_chunk_ - 1) / per_chunk_;
    const int64_t per_depth = W::kPoints * per_chunk_ * kPanel * 4;
    block_depth_ = std::clamp(kFilterBlockBytes / per_depth / kPanel * kPanel, kPanel, depth_);
    shared_elements_ = aligned(W::kPoints * point_step(group_, depth_));
    block_elements_ = aligned(W::kPoints * block_depth_ * per_chunk_ * kPanel);
    result_elements_ = aligned(W::kPoints * point_step(group_, per_chunk_ * kPanel));
    edge_elements_ = aligned(W::kPoints * channels_);
    // Tiles are transformed side by side too, each with an edge of its own.
    chunks_ = std::max(chunks_, std::min<int64_t>(grid_.tiles(), Workspaces::kMost));
  }

  // Filters [o, o + filters) at depths [k, k + depth).
  struct FilterBlock {
    int64_t k, depth, o, filters;
  };

  void run_by_tiles(const RunContext& c, const ImageView& images, const float* filter,
                    float* shared, float* out) const {
    const FilterBlock all = {0, depth_, 0, filters_};
    const float* filters = kept_filters(c, filter);
    if (filters == nullptr) {
      transform_all(c, filter, shared);
      filters = shared;
    }
    Workspaces workspaces;
    c.run_chunks(chunks_, this->cost_ns, [&](int64_t chunk) {
      const Workspaces::Use use(workspaces);
      float* const tiles = shared + shared_elements_ + use.index() * workspace();
      float* const results = tiles + block_elements_;
      for (int64_t i = 0; i < per_chunk_; ++i) {
        const int64_t first = (chunk * per_chunk_ + i) * group_;
        const int64_t count = std::min(group_, grid_.tiles() - first);
        if (count <= 0) return;
        for (int64_t t = 0; t < count; ++t)
          transform_tile(images, first + t, t, results + result_elements_, tiles);
        multiply(tiles, filters, all, count, results);
        for (int64_t t = 0; t < count; ++t) write_tile(first + t, t, results, all, out);
      }
    });
  }

  void transform_all(const RunContext& c, const float* filter, float* filters) const {
    const FilterBlock all = {0, depth_, 0, filters_};
    const double cost = 1.0 * W::kPoints * static_cast<double>(filters_);
    c.parallel_for(depth_ / kLanes<float>, 1, cost * kLanes<float>, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) transform_lanes(filter, i * kLanes<float>, all, filters);
    });
  }

  // The transformed filters of a weight that stays, where transforming them is a part of the work
  // worth the memory. Null: transform them now.
  const float* kept_filters(const RunContext& c, const float* filter) const {
    static const char maker = 0;
    constexpr int64_t kFewEnough = 256;  // tiles
    constexpr int kFilter = 1;           // the input, forward and backward
    if (grid_.tiles() > kFewEnough || c.input(kFilter).raw() != filter) return nullptr;
    const PackKey key = {&maker,
                         {kOut * 16 + kTaps, channels_, filters_, plane_taps_ * 2 + backward_}};
    const size_t bytes = static_cast<size_t>(shared_elements_) * sizeof(float);
    return reinterpret_cast<const float*>(c.prepacked(kFilter, key, bytes, [&](std::byte* to) {
      transform_all(c, filter, reinterpret_cast<float*>(to));
    }));
  }

  void run_by_filters(const RunContext& c, const ImageView& images, const float* filter,
                      float* tiles, float* out) const {
    float* const spaces = tiles + shared_elements_;
    const int64_t count = grid_.tiles(), width = per_chunk_ * kPanel;
    Workspaces edges;
    c.run_chunks(count, 0.1 * this->cost_ns, [&](int64_t t) {
      const Workspaces::Use use(edges);
      float* const edge = spaces + use.index() * workspace() + block_elements_ + result_elements_;
      transform_tile(images, t, t, edge, tiles);
    });
    Workspaces workspaces;
    c.run_chunks((filters_ + width - 1) / width, this->cost_ns, [&](int64_t chunk) {
      const Workspaces::Use use(workspaces);
      float* const block_filters = spaces + use.index() * workspace();
      float* const results = block_filters + block_elements_;
      FilterBlock block = {0, 0, chunk * width, std::min(width, filters_ - chunk * width)};
      for (; block.k < depth_; block.k += block_depth_) {
        block.depth = std::min(block_depth_, depth_ - block.k);
        for (int64_t k = 0; k < block.depth; k += kLanes<float>)
          transform_lanes(filter, block.k + k, block, block_filters);
        multiply(tiles, block_filters, block, count, results);
      }
      for (int64_t t = 0; t < count; ++t) write_tile(t, t, results, block, out);
    });
  }

  // A vector's worth of the filter's depth from `k` on, into U[point][block's filters /
  // kPanel][block's depth][kPanel].
  void transform_lanes(const float* filter, int64_t k, const FilterBlock& block, float* to) const {
    const int64_t step = channels_ * filters_, points = block.depth * block.filters;
    const int64_t tap = k / channels_, channel = k % channels_;
    const float* plane = filter + (backward_ ? plane_taps_ - 1 - tap : tap) * kTaps * kTaps * step;
    for (int64_t o = 0; o < block.filters; o += kLanes<float>) {
      float* const first = to + panel_offset(block.depth, k - block.k, o);
      if (backward_) {
        flipped_square(plane, channel, block.o + o, first, points);
        continue;
      }
      for (int64_t i = 0; i < kLanes<float>; ++i) {
        W::template square_to_points<W::g, kTaps>(plane + (channel + i) * filters_ + block.o + o,
                                                  kTaps * step, step, first + i * kPanel, points);
      }
    }
  }

  // For the gradient the filter is stored [taps][filters_][channels_], taps in the wrong order:
  // squares of channels are turned.
  void flipped_square(const float* filter, int64_t channel, int64_t o, float* to,
                      int64_t points) const {
    constexpr int lanes = kLanes<float>;
    const int64_t step = channels_ * filters_;
    float turned[lanes][kTaps * kTaps * lanes];
    for (int tap = 0; tap < kTaps * kTaps; ++tap) {
      VecF square[lanes];
      const float* from = filter + (kTaps * kTaps - 1 - tap) * step;
      for (int i = 0; i < lanes; ++i) square[i] = load<VecF>(from + (o + i) * channels_ + channel);
      transpose<float>(square);
      for (int i = 0; i < lanes; ++i) store(&turned[i][tap * lanes], square[i]);
    }
    for (int i = 0; i < lanes; ++i) {
      W::template square_to_points<W::g, kTaps>(turned[i], kTaps * lanes, lanes, to + i * kPanel,
                                                points);
    }
  }

  // The tile that is number t of its group.
  void transform_tile(const ImageView& images, int64_t tile, int64_t t, float* edge,
                      float* tiles) const {
    const int64_t step = point_step(group_, depth_);
    int64_t plane, row, column;
    grid_.locate(tile, plane, row, column);
    for (int64_t tap = 0; tap < plane_taps_; ++tap) {
      const int64_t from = plane % out_planes_ + tap - front_;
      // Rows outside the image are zeros: so is a plane outside the volume.
      const bool inside = from >= 0 && from < in_planes_;
      const Square s =
          square_at(images, plane / out_planes_ * in_planes_ + (inside ? from : 0),
                    inside ? row * kOut - top_ : in_height_, column * kOut - left_, W::kSize, edge);
      for (int64_t i = 0; i < channels_; i += kLanes<float>) {
        W::template square_to_points<W::bt, W::kSize>(
            s.first + i, s.row, s.column, tiles + panel_offset(group_, t, tap * channels_ + i),
            step);
      }
    }
  }

  // Per point, tiles[count, depth] times the block's filters, or the sum over blocks of depth.
  void multiply(const float* tiles, const float* filters, const FilterBlock& block, int64_t count,
                float* results) const {
    const int64_t in_step = point_step(group_, depth_),
                  out_step = point_step(group_, result_filters(block));
    // Register tiles of almost the same height: a low one at the end would leave the multiply-adds
    // waiting for each other.
    const int64_t parts = (count + kMicroRows - 1) / kMicroRows;
    MicroKernelCall<float> t{};
    t.depth = kPanel;
    t.segments = block.depth / kPanel;
    t.a_segment = group_ * kPanel;
    t.a_row = kPanel;
    t.a_step = 1;
    t.ldb = kPanel;
    t.ldc = kPanel;
    t.add = block.k > 0;
    for (int64_t point = 0; point < W::kPoints; ++point) {
      const float* const from = tiles + point * in_step + panel_offset(group_, 0, block.k);
      for (int64_t o = 0; o < block.filters; o += kPanel) {
        t.b = filters + (point * block.filters + o) * block.depth;
        for (int64_t i = 0; i < parts; ++i) {
          const int64_t first = count * i / parts, end = count * (i + 1) / parts;
          t.a = from + first * kPanel;
          t.c = results + point * out_step + panel_offset(group_, first, o);
          run_micro_kernel(end - first, kPanel, t);
        }
      }
    }
  }

  // Filters that `results` has room for.
  int64_t result_filters(const FilterBlock& block) const {
    return by_filters_ ? per_chunk_ * kPanel : block.filters;
  }

  void write_tile(int64_t tile, int64_t t, const float* results, const FilterBlock& block,
                  float* out) const {
    int64_t image, row, column;
    grid_.locate(tile, image, row, column);
    const int64_t y = row * kOut, x = column * kOut;
    const int rows = static_cast<int>(std::min<int64_t>(kOut, out_height_ - y));
    const int columns = static_cast<int>(std::min<int64_t>(kOut, out_width_ - x));
    const int64_t step = point_step(group_, result_filters(block));
    float* const to = out + ((image * out_height_ + y) * out_width_ + x) * filters_ + block.o;
    for (int64_t o = 0; o < block.filters; o += kLanes<float>) {
      W::template square_from_points<W::at, kOut>(
          results + panel_offset(group_, t, o),
          step, [&](int i, int j, VecF v) __attribute__((always_inline)) {
            if (i < rows && j < columns) store(to + (i * out_width_ + j) * filters_ + o, v);
          });
    }
  }

  bool backward_;
  int64_t channels_, filters_, plane_taps_, depth_, in_planes_, out_planes_, front_, in_height_,
      in_width_, out_height_, out_width_, top_, left_;
  TileGrid grid_;
  bool by_filters_;
  // By tiles a group has group_ tiles and a chunk per_chunk_ groups; by filters a group has all
  // tiles, and a chunk per_chunk_ panels of filters.
  int64_t group_, per_chunk_, chunks_, block_depth_ = 0;
  int64_t shared_elements_, block_elements_, result_elements_, edge_elements_;
};

}  // namespace

ConvPtr<float> winograd_forward(const ConvGeometry& g, bool backward) {
  if (g.rows.taps == 3) return std::make_unique<WinogradForward<4, 3>>(g, backward);
  return std::make_unique<WinogradForward<4, 5>>(g, backward);
}

}  // namespace treenail::cpu
