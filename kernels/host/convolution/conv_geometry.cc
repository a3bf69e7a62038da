// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/convolution/conv_geometry.h"

#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::host {
namespace {

const Shape& input_of(ConvPass pass, const PrepareContext& c) {
  return pass == ConvPass::kInput ? c.output_shape(0) : c.input_shape(0);
}

const Shape& filter_of(ConvPass pass, const PrepareContext& c) {
  return pass == ConvPass::kFilter ? c.output_shape(0) : c.input_shape(1);
}

}  // namespace

ConvGeometry ConvGeometry::of(ConvPass pass, const PrepareContext& c) {
  const Shape &input = input_of(pass, c), &filter = filter_of(pass, c);
  const WindowAttrs w = WindowAttrs::of(c.op());
  ConvGeometry g;
  g.batch = input.dim(0);
  g.channels = input.dim(w.channel_axis());
  g.depthwise = c.op().name().starts_with("Depthwise");
  g.channels_second = w.channels_second;
  g.filters = filter.dim(w.spatial + 1);
  if (g.depthwise) g.filters = checked_product(g.channels, g.filters);
  const auto axis = [&](int i) { return w.axis(i, input.dim(w.spatial_axis(i)), filter.dim(i)); };
  if (w.spatial == 3) g.planes = axis(0);
  g.rows = axis(w.spatial - 2);
  g.columns = axis(w.spatial - 1);
  return g;
}

}  // namespace treenail::host
