// SPDX-License-Identifier: Apache-2.0
// Windows over images: what a window covers, which windows cover an element. A thread does some
// neighbouring channels of a pixel, 16 bytes of them where memory allows.
#pragma once

#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/pooling/pool_space.h"

namespace treenail::gpu {

// Some neighbours, as they are computed.
template <class S, int kN>
struct Values {
  Computed<S> of[kN];
};
template <int kN, class S>
TN_DEVICE Values<S, kN> read(const S* from) {
  const Group<S, kN> group = load_group<kN>(from, 1);
  Values<S, kN> values;
  for (int k = 0; k < kN; ++k) values.of[k] = Stored<S>::widen(group.element[k]);
  return values;
}
template <int kN, class S>
TN_DEVICE void write(S* to, const Values<S, kN>& values) {
  Group<S, kN> group;
  for (int k = 0; k < kN; ++k) group.element[k] = Stored<S>::narrow(values.of[k]);
  store_group(to, group);
}

// f(how many channels a thread does, as a type), for arrays that all hold images of these channels.
template <class S, class F, class... Arrays>
TN_DEVICE void by_channels(const PoolSpace& p, F f, const Arrays*... arrays) {
  constexpr int kN = kGroupSize<S>;
  if (p.channels.size % kN == 0 && (is_aligned(arrays, sizeof(S) * kN) && ...)) {
    f(std::integral_constant<int, kN>());
  } else {
    f(std::integral_constant<int, 1>());
  }
}

// Along an axis, from begin to before end.
struct Range {
  int64_t begin, end;
  TN_DEVICE int64_t size() const { return end - begin; }
};

// The part of window `at` that lies inside the image; never empty.
TN_DEVICE Range covered_by(const PoolAxis& a, int64_t at) {
  const int64_t first = at * a.stride.size - a.pad_before, end = first + a.taps;
  return {first > 0 ? first : 0, end < a.input.size ? end : a.input.size};
}

// The windows that cover element `at`.
TN_DEVICE Range windows_over(const PoolAxis& a, int64_t at) {
  const int64_t passed = at + a.pad_before - a.taps;  // windows that begin here or before end early
  const int64_t end = quotient(a.stride, at + a.pad_before) + 1;
  return {passed < 0 ? 0 : quotient(a.stride, passed) + 1,
          end < a.output.size ? end : a.output.size};
}

// A pixel of an image and the first of a thread's channels.
struct Pixel {
  int64_t image, at[kPoolAxes], channel;
};

// Where `image`'s element at a pixel lies, of input or output.
template <bool kOutput>
TN_DEVICE int64_t place(const PoolSpace& p, int64_t image, int64_t plane, int64_t row,
                        int64_t column, int64_t channel) {
  const auto extent = [&](int i) { return kOutput ? p.axis[i].output.size : p.axis[i].input.size; };
  const int64_t line = (image * extent(0) + plane) * extent(1) + row;
  return (line * extent(2) + column) * p.channels.size + channel;
}

// body(pixel, where it lies) for this thread's pixels of input or output.
template <bool kOutput, int kN, class F>
TN_DEVICE void for_pixels(const PoolSpace& p, F body) {
  const auto axis = [&](int i) -> const Divisor& {
    return kOutput ? p.axis[i].output : p.axis[i].input;
  };
  const Divisor& channels = kN > 1 ? p.groups : p.channels;
  const int64_t n = p.images * axis(0).size * axis(1).size * axis(2).size * channels.size;
  TN_NO_UNROLL
  for (int64_t i = first(); i < n; i += stride()) {
    const Divided channel = divided(channels, i), column = divided(axis(2), channel.quotient);
    const Divided row = divided(axis(1), column.quotient), plane = divided(axis(0), row.quotient);
    body(Pixel{plane.quotient, {plane.rest, row.rest, column.rest}, channel.rest * kN}, i * kN);
  }
}

// What a window covers: planes, rows and columns.
struct Window {
  Range planes, rows, columns;
  TN_DEVICE Window(const PoolSpace& p, int64_t plane, int64_t row, int64_t column)
      : planes(covered_by(p.axis[0], plane)),
        rows(covered_by(p.axis[1], row)),
        columns(covered_by(p.axis[2], column)) {}
  TN_DEVICE Window(const PoolSpace& p, const Pixel& output)
      : Window(p, output.at[0], output.at[1], output.at[2]) {}
  TN_DEVICE int64_t size() const { return planes.size() * rows.size() * columns.size(); }
};

// body(where the element lies) for the elements of a window and a channel, planes and rows first.
// Stops where body says so.
template <class F>
TN_DEVICE void for_elements(const PoolSpace& p, const Window& w, int64_t image, int64_t channel,
                            F body) {
  for (int64_t plane = w.planes.begin; plane < w.planes.end; ++plane) {
    for (int64_t row = w.rows.begin; row < w.rows.end; ++row) {
      int64_t at = place<false>(p, image, plane, row, w.columns.begin, channel);
      for (int64_t j = w.columns.begin; j < w.columns.end; ++j, at += p.channels.size) {
        if (!body(at)) return;
      }
    }
  }
}

// body(plane, row, column) of the windows that cover a pixel of the input, in their order.
template <class F>
TN_DEVICE void for_windows_over(const PoolSpace& p, const Pixel& input, F body) {
  const Range planes = windows_over(p.axis[0], input.at[0]),
              rows = windows_over(p.axis[1], input.at[1]),
              columns = windows_over(p.axis[2], input.at[2]);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) body(plane, row, column);
    }
  }
}

// Whether an element is its window's maximum, NaN where that is.
template <class C>
TN_DEVICE bool is_maximum(C x, C largest) {
  return x == largest || (x != x && largest != largest);
}

}  // namespace treenail::gpu
