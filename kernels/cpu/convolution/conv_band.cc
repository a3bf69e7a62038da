// SPDX-License-Identifier: Apache-2.0
// The padded copy of a band of rows: it is read many times from the nearest cache, so the copy
// costs little, and the tiles never ask where the image ends.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/convolution/convolution.h"

namespace treenail::cpu {

namespace {

// Elements from the first to behind the last that the windows of an axis cover, padding included.
int64_t covered(const WindowAxis& a, int64_t windows) {
  return (windows - 1) * a.stride + a.extent();
}

bool axis_padded(const WindowAxis& a) {
  return a.pad_before > 0 || covered(a, a.output) - a.pad_before > a.input;
}

}  // namespace

bool is_padded(const ConvGeometry& g) { return axis_padded(g.rows) || axis_padded(g.columns); }

int64_t band_elements(const ConvGeometry& g, int64_t output_rows) {
  return is_padded(g) ? checked_product(checked_product(covered(g.rows, output_rows),
                                                        covered(g.columns, g.columns.output)),
                                        g.channels)
                      : 0;
}

template <class T>
Band<T> padded_band(const ConvGeometry& g, const T* image, int64_t begin, int64_t end, T* copy) {
  const int64_t row_elements = g.columns.input * g.channels;
  if (!is_padded(g)) return {image + begin * g.rows.stride * row_elements, row_elements};
  const int64_t width = covered(g.columns, g.columns.output);
  const int64_t stride = width * g.channels;
  const int64_t left = std::min(g.columns.pad_before, width);
  const int64_t inside = std::clamp<int64_t>(width - left, 0, g.columns.input);
  const int64_t right = width - left - inside;
  const int64_t first = begin * g.rows.stride - g.rows.pad_before;
  const int64_t count = covered(g.rows, end - begin);
  for (int64_t i = 0; i < count; ++i) {
    T* to = copy + i * stride;
    const int64_t row = first + i;
    if (row < 0 || row >= g.rows.input) {
      std::fill_n(to, stride, T(0));
      continue;
    }
    std::fill_n(to, left * g.channels, T(0));
    std::memcpy(to + left * g.channels, image + row * row_elements,
                static_cast<size_t>(inside * g.channels) * sizeof(T));
    std::fill_n(to + (left + inside) * g.channels, right * g.channels, T(0));
  }
  return {copy, stride};
}

template Band<float> padded_band(const ConvGeometry&, const float*, int64_t, int64_t, float*);
template Band<double> padded_band(const ConvGeometry&, const double*, int64_t, int64_t, double*);

}  // namespace treenail::cpu
