// SPDX-License-Identifier: Apache-2.0
// Which convolutions Winograd's algorithm computes faster than the direct one: from the shape
// alone.
#include <algorithm>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/convolution/winograd_tiles.h"

namespace treenail::cpu {

bool prefer_winograd(const ConvGeometry& g, ConvPass pass) {
  const int64_t taps = g.rows.taps;
  if (!g.flat() && (pass == ConvPass::kFilter || g.planes.pad_before >= g.planes.taps))
    return false;
  if (!g.plain_stride() || g.dilated() || g.columns.taps != taps || (taps != 3 && taps != 5))
    return false;
  if (g.channels % kPanel != 0 || g.filters % kPanel != 0) return false;
  if (g.rows.pad_before >= taps || g.columns.pad_before >= taps) return false;
  constexpr int64_t out = 4;
  const int64_t planes = pass == ConvPass::kInput ? g.planes.input : g.planes.output;
  const int64_t height = pass == ConvPass::kInput ? g.rows.input : g.rows.output;
  const int64_t width = pass == ConvPass::kInput ? g.columns.input : g.columns.output;
  const int64_t tiles_down = (height + out - 1) / out;
  const int64_t tiles_across = (width + out - 1) / out;
  const double tiles = static_cast<double>(planes * tiles_down * tiles_across);
  const double points = static_cast<double>((out + taps - 1) * (out + taps - 1));
  const double pairs = static_cast<double>(g.planes.taps * g.channels * g.filters);
  const int64_t read = pass == ConvPass::kInput ? g.filters : g.channels;
  const int64_t written = pass == ConvPass::kInput ? g.channels : g.filters;
  // Multiply-adds, and transforms counted as so many multiply-adds per point and channel.
  constexpr double kTransform = 24;
  const double ours =
      tiles * points * (pairs + kTransform * static_cast<double>(g.planes.taps * read + written));
  const double direct = static_cast<double>(g.output_pixels() * g.plane_taps()) * pairs;
  // The filters are transformed at every run: a few tiles do not pay for it.
  const double filters = points * pairs * 4;
  return ours * static_cast<double>(g.batch) + filters <
         0.9 * direct * static_cast<double>(g.batch);
}

}  // namespace treenail::cpu
