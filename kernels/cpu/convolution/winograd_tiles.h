// SPDX-License-Identifier: Apache-2.0
// Where Winograd's tiles lie in a batch of images, and the memory of transformed tiles:
// [point][channels / kPanel][tile][kPanel], so that one layout serves as left and as right operand
// of the register tile. Shared by winograd.cc and winograd_filter.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/convolution/winograd.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {

inline constexpr int64_t kPanel = kMicroColumns<float>;

// One side of the convolution cut into tiles: the images read from (input points) or written to
// (outputs).
struct TileGrid {
  int64_t batch, micro_rows, tile_columns;
  int64_t tiles() const { return batch * micro_rows * tile_columns; }
  void locate(int64_t tile, int64_t& image, int64_t& row, int64_t& column) const {
    column = tile % tile_columns;
    tile /= tile_columns;
    row = tile % micro_rows;
    image = tile / micro_rows;
  }
};

// A batch of images with channels last.
struct ImageView {
  const float* data;
  int64_t height, width, channels;
};

// The square of `size` points whose first lies at (y, x), possibly outside, of one image: in place
// when it is inside, else a copy in `edge` (size * size * channels) with zeros around.
struct Square {
  const float* first;
  int64_t row, column;
};
inline Square square_at(const ImageView& images, int64_t image, int64_t y, int64_t x, int size,
                        float* edge) {
  const int64_t n = images.channels;
  const float* const base = images.data + image * images.height * images.width * n;
  if (y >= 0 && x >= 0 && y + size <= images.height && x + size <= images.width) {
    return {base + (y * images.width + x) * n, images.width * n, n};
  }
  const int64_t left = std::clamp<int64_t>(-x, 0, size),
                right = std::clamp<int64_t>(images.width - x, left, size);
  for (int64_t i = 0; i < size; ++i) {
    float* const to = edge + i * size * n;
    if (y + i < 0 || y + i >= images.height) {
      std::fill_n(to, size * n, 0.0F);
      continue;
    }
    std::fill_n(to, left * n, 0.0F);
    std::memcpy(to + left * n, base + ((y + i) * images.width + x + left) * n,
                static_cast<size_t>((right - left) * n) * sizeof(float));
    std::fill_n(to + right * n, (size - right) * n, 0.0F);
  }
  return {edge, size * n, n};
}

// Elements between one point's matrix and the next: one cache line more than it fills, lest all
// points of a tile fall into one set of the cache.
inline int64_t point_step(int64_t tiles, int64_t channels) { return tiles * channels + 16; }

// Where the vector of channels at `channel` of `tile` lies within a point's matrix.
inline int64_t panel_offset(int64_t tiles, int64_t tile, int64_t channel) {
  return (channel / kPanel * tiles + tile) * kPanel + channel % kPanel;
}

}  // namespace treenail::cpu
