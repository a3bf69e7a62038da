// SPDX-License-Identifier: Apache-2.0
// The geometry of a convolution, full or depthwise, in two dimensions or three, and of the two
// products that its gradients are made of.
#pragma once

#include <cstdint>

#include "framework/op/window.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::host {

// Which of its three tensors is computed from the other two: the output, the input (a gradient) or
// the filter (a gradient).
enum class ConvPass { kForward, kInput, kFilter };

struct ConvGeometry {
  int64_t batch = 0;
  int64_t channels = 0;  // of the input
  int64_t filters = 0;   // channels of the output
  bool depthwise = false;
  bool channels_second = false;
  WindowAxis planes{.input = 1, .output = 1};  // the depth of volumes
  WindowAxis rows, columns;

  // Of one of the ops, in the layout that its attributes name.
  static ConvGeometry of(ConvPass pass, const PrepareContext& c);

  int64_t plane_taps() const { return rows.taps * columns.taps; }
  int64_t taps() const { return planes.taps * plane_taps(); }
  int64_t input_plane() const { return rows.input * columns.input; }
  int64_t output_plane() const { return rows.output * columns.output; }
  int64_t input_pixels() const { return planes.input * input_plane(); }
  int64_t output_pixels() const { return planes.output * output_plane(); }
  int64_t filter_elements() const { return taps() * filters * (depthwise ? 1 : channels); }
  double multiply_adds() const {
    return static_cast<double>(batch) * static_cast<double>(output_pixels()) *
           static_cast<double>(filter_elements());
  }
  bool plain_stride() const {
    return planes.stride == 1 && rows.stride == 1 && columns.stride == 1;
  }
  // One plane in, one out: what the algorithms for images take.
  bool flat() const { return planes.input == 1 && planes.output == 1 && planes.taps == 1; }
  bool dilated() const { return planes.dilation > 1 || rows.dilation > 1 || columns.dilation > 1; }
  // Nothing to compute; gradients are zero.
  bool empty() const {
    for (const WindowAxis* a : {&planes, &rows, &columns})
      if (a->input == 0 || a->output == 0) return true;
    return batch == 0 || channels == 0 || filters == 0;
  }
};

}  // namespace treenail::host
