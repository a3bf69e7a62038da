// SPDX-License-Identifier: Apache-2.0
// Pooling over images and volumes of float or double with channels last: geometry, and the passes
// that pool_passes.cc computes. Layouts, other dtypes and registration: pooling.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/op/window.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::cpu {

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

template <class C>
void max_pool(const RunContext& c, const Pool& p, const C* x, C* y);
template <class C>
void average_pool(const RunContext& c, const Pool& p, const C* x, C* y);
// taps[...]: the number of the first maximum's tap, rows first, counted over the part of the window
// that lies inside the image.
template <class C>
void max_pool_taps(const RunContext& c, const Pool& p, const C* x, C* y, int32_t* taps);
template <class C>
void max_pool_gradient(const RunContext& c, const Pool& p, const C* x, const C* y, const C* dy,
                       C* dx);
// out = g, of the input's size, at the first maximum of each window.
template <class C>
void max_pool_second_gradient(const RunContext& c, const Pool& p, const C* x, const C* y,
                              const C* g, C* out);
template <class C>
void average_pool_gradient(const RunContext& c, const Pool& p, const C* dy, C* dx);

}  // namespace treenail::cpu
