// SPDX-License-Identifier: Apache-2.0
// The geometry of pooling over images and volumes, for every device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "framework/base/error.h"
#include "framework/op/window.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

struct Pool {
  int64_t batch = 0, channels = 0;
  WindowAxis planes{.input = 1, .output = 1};  // the depth of volumes
  WindowAxis rows, columns;
  bool channels_second = false;

  Pool(const OpInstance& op, const Shape& input) {
    const WindowAttrs w = WindowAttrs::of(op);
    batch = input.dim(0);
    channels = input.dim(w.channel_axis());
    const auto axis = [&](int i) { return w.axis(i, input.dim(w.spatial_axis(i)), w.size[i]); };
    if (w.spatial == 3) planes = axis(0);
    rows = axis(w.spatial - 2);
    columns = axis(w.spatial - 1);
    channels_second = w.channels_second;
  }
  int64_t input_pixels() const { return planes.input * rows.input * columns.input; }
  int64_t output_rows() const { return planes.output * rows.output; }
  int64_t output_pixels() const { return output_rows() * columns.output; }
  bool empty() const {
    for (const WindowAxis* a : {&planes, &rows, &columns})
      if (a->input == 0 || a->output == 0) return true;
    return batch == 0 || channels == 0;
  }
  double cost() const {
    return 50 + 0.15 * static_cast<double>(batch * output_pixels() * channels) *
                    static_cast<double>(planes.taps) * static_cast<double>(rows.taps) *
                    static_cast<double>(columns.taps);
  }
};

// The part of window `at` that lies inside the image; never empty.
struct WindowRange {
  int64_t begin, end;
  WindowRange(const WindowAxis& a, int64_t at) {
    const int64_t first = at * a.stride - a.pad_before;
    begin = std::max<int64_t>(0, first);
    end = std::min(a.input, first + a.taps);
  }
};

// Errors: InvalidArgument where positions of maxima, counted in an image or the whole batch, may be
// too large for their dtype.
inline void check_positions(const Pool& p, bool with_batch, DType dtype) {
  const int64_t positions = (with_batch ? p.batch : 1) * p.input_pixels() * p.channels;
  if (dtype != DType::kInt64 && positions - 1 > std::numeric_limits<int32_t>::max()) {
    throw invalid_argument("argmax of ", positions, " positions does not fit into ", dtype,
                           "; use Targmax = int64");
  }
}

}  // namespace treenail::host
