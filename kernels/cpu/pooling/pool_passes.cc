// SPDX-License-Identifier: Apache-2.0
// The pooling passes, a vector of channels at a time with all taps of a window in turn. Where a
// pixel's channels do not fill its last vector, whole vectors are still read and written: what
// spills over into the next pixels is either masked to change nothing or written again, since
// pixels of a row are visited in order; only at the end of a row is it cut off.
#include "kernels/cpu/pooling/pool_passes.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/simd/vec.h"

namespace treenail::cpu {
namespace {

// An array that may be read and written up to its end. With kWhole, channels fill whole vectors and
// nothing needs a test.
template <class C, bool kWhole>
struct Span {
  using E = std::remove_const_t<C>;
  C* data;
  C* end;
  TN_INLINE Vec<E> read(int64_t at, int64_t count) const {
    const C* p = data + at;
    if (kWhole || p + kLanes<E> <= end) return load<Vec<E>>(p);
    return load_part<Vec<E>>(p, std::min<int64_t>(count, kLanes<E>));
  }
  // Nothing from row_end on may change.
  TN_INLINE void write(int64_t at, Vec<E> v, int64_t count, int64_t row_end) const {
    if (kWhole || count >= kLanes<E> || at + kLanes<E> <= row_end) {
      store(data + at, v);
    } else {
      store_part(data + at, v, count);
    }
  }
};

template <bool kWhole, class C>
Span<C, kWhole> span(C* data, int64_t elements) {
  return {data, data + elements};
}

// f(bool_constant): whether a pixel's channels fill whole vectors.
template <class C, class F>
void by_channels(const Pool& p, F f) {
  if (p.channels % kLanes<C> == 0) {
    f(std::true_type{});
  } else {
    f(std::false_type{});
  }
}

// body(image, row) for every output row of every image, rows counted through all planes.
template <class F>
void for_output_rows(const RunContext& c, const Pool& p, double cost, F body) {
  const int64_t rows = p.batch * p.output_rows();
  const double row = cost / static_cast<double>(rows);
  c.parallel_for(rows, std::max<int64_t>(1, static_cast<int64_t>(20000 / row)), row,
                 [&](int64_t i, int64_t end) {
                   for (; i < end; ++i) body(i / p.output_rows(), i % p.output_rows());
                 });
}

// body(image) for every image: windows may overlap, so an image's gradient has one writer.
template <class F>
void for_images(const RunContext& c, const Pool& p, double cost, F body) {
  const double image = cost / static_cast<double>(p.batch);
  c.parallel_for(p.batch, std::max<int64_t>(1, static_cast<int64_t>(20000 / image)), image,
                 [&](int64_t i, int64_t end) {
                   for (; i < end; ++i) body(i);
                 });
}

// The planes and rows that the windows of one output row cover.
struct Slab {
  WindowRange planes, rows;
  Slab(const Pool& p, int64_t row)
      : planes(p.planes, row / p.rows.output), rows(p.rows, row % p.rows.output) {}
  int64_t count() const { return (planes.end - planes.begin) * (rows.end - rows.begin); }
};

// f(where the tap's pixel begins, tap, where its row ends) for the taps of a window that lie inside
// the image, planes and rows first.
template <class F>
TN_INLINE void for_taps(const Pool& p, const Slab& r, const WindowRange& s, F f) {
  int64_t tap = 0;
  for (int64_t d = r.planes.begin; d < r.planes.end; ++d) {
    for (int64_t i = r.rows.begin; i < r.rows.end; ++i) {
      const int64_t row = d * p.rows.input + i;
      for (int64_t j = s.begin; j < s.end; ++j) {
        f((row * p.columns.input + j) * p.channels, tap++,
          (row + 1) * p.columns.input * p.channels);
      }
    }
  }
}

// For each window of an output row: reduce(channel, channels left, window) gives the vector to
// store at its output pixel.
template <bool kWhole, class C, class F>
TN_INLINE void reduce_row(const Pool& p, int64_t row, C* out, F reduce) {
  const Slab r(p, row);
  const Span<C, kWhole> to = span<kWhole>(out, p.columns.output * p.channels);
  for (int64_t x = 0; x < p.columns.output; ++x) {
    const WindowRange s(p.columns, x);
    for (int64_t i = 0; i < p.channels; i += kLanes<C>) {
      const int64_t left = p.channels - i;
      to.write(x * p.channels + i, reduce(r, s, x, i, left), left, p.columns.output * p.channels);
    }
  }
}

// Whether every pixel of an axis lies in exactly one window: then gradients are stored, not added
// up.
bool tiled(const WindowAxis& a) {
  return a.stride == a.taps && a.pad_before == 0 && a.output * a.stride >= a.input;
}

template <class C>
using MaskOf = Int<Vec<C>>;

// All bits set in the first `count` lanes.
template <class C>
TN_INLINE MaskOf<C> first_lanes(int64_t count) {
  MaskOf<C> mask{};
  for (int i = 0; i < kLanes<C>; ++i) mask[i] = i < count ? -1 : 0;
  return mask;
}

// The lanes where v is the window's maximum (or NaN like it) for the first time; `taken` remembers.
template <class C>
TN_INLINE MaskOf<C> first_maxima(Vec<C> v, Vec<C> largest, MaskOf<C>& taken) {
  const MaskOf<C> here =
      (MaskOf<C>)(v == largest) | ((MaskOf<C>)(v != v) & (MaskOf<C>)(largest != largest));
  const MaskOf<C> first = here & ~taken;
  taken |= here;
  return first;
}

template <class C>
TN_INLINE Vec<C> masked(MaskOf<C> mask, Vec<C> v) {
  return bits<Vec<C>>((MaskOf<C>)(mask & bits<MaskOf<C>>(v)));
}

template <class C, bool kStored, bool kWhole>
void max_gradient_of_image(const Pool& p, const C* image, const C* pooled, const C* gradients,
                           C* dx) {
  const int64_t in = p.input_pixels() * p.channels, out = p.output_pixels() * p.channels;
  const Span<const C, kWhole> x = span<kWhole>(image, in), y = span<kWhole>(pooled, out),
                              dy = span<kWhole>(gradients, out);
  const Span<C, kWhole> to = span<kWhole>(dx, in);
  if (!kStored) std::fill(to.data, to.end, C(0));
  for (int64_t row = 0; row < p.output_rows(); ++row) {
    const Slab r(p, row);
    for (int64_t column = 0; column < p.columns.output; ++column) {
      const WindowRange s(p.columns, column);
      for (int64_t i = 0; i < p.channels; i += kLanes<C>) {
        const int64_t left = p.channels - i,
                      at = (row * p.columns.output + column) * p.channels + i;
        const Vec<C> largest = y.read(at, left);
        const Vec<C> whole = dy.read(at, left);
        const Vec<C> gradient = kWhole ? whole : masked<C>(first_lanes<C>(left), whole);
        MaskOf<C> taken{};
        for_taps(
            p, r, s, [&](int64_t pixel, int64_t, int64_t row_end) __attribute__((always_inline)) {
              const Vec<C> share =
                  masked<C>(first_maxima<C>(x.read(pixel + i, left), largest, taken), gradient);
              if (kStored) {
                // What spills over must be written later: not so where the next pixel's first
                // vector is done already.
                to.write(pixel + i, share, left, p.channels <= kLanes<C> ? row_end : 0);
              } else {
                to.write(pixel + i, to.read(pixel + i, left) + share, left, row_end);
              }
            });
      }
    }
  }
}

}  // namespace

template <class C>
void max_pool(const RunContext& c, const Pool& p, const C* x, C* y) {
  const int64_t in = p.input_pixels() * p.channels, row_elements = p.columns.output * p.channels;
  by_channels<C>(p, [&]<bool kWhole>(std::bool_constant<kWhole>) {
    for_output_rows(c, p, p.cost(), [&](int64_t image, int64_t row) {
      const Span<const C, kWhole> from = span<kWhole>(x + image * in, in);
      reduce_row<kWhole>(
          p, row, y + (image * p.output_rows() + row) * row_elements,
          [&](const Slab& r, const WindowRange& s, int64_t column, int64_t i, int64_t left) {
            Vec<C> most = from.read(
                ((r.planes.begin * p.rows.input + r.rows.begin) * p.columns.input + s.begin) *
                        p.channels +
                    i,
                left);
            for_taps(
                p, r, s, [&](int64_t pixel, int64_t, int64_t) __attribute__((always_inline)) {
                  const Vec<C> v = from.read(pixel + i, left);
                  most = ((MaskOf<C>)(v > most) | (MaskOf<C>)(v != v)) ? v : most;  // NaN wins
                });
            return most;
          });
    });
  });
}

template <class C>
void max_pool_taps(const RunContext& c, const Pool& p, const C* x, C* y, int32_t* taps) {
  const int64_t in = p.input_pixels() * p.channels, row_elements = p.columns.output * p.channels;
  for_output_rows(c, p, p.cost(), [&](int64_t image, int64_t row) {
    const Span<const C, false> from = span<false>(x + image * in, in);
    int32_t* const numbers = taps + (image * p.output_rows() + row) * row_elements;
    reduce_row<false>(
        p, row, y + (image * p.output_rows() + row) * row_elements,
        [&](const Slab& r, const WindowRange& s, int64_t column, int64_t i, int64_t left) {
          Vec<C> most{};
          MaskOf<C> at{};
          bool first = true;
          for_taps(p, r, s, [&](int64_t pixel, int64_t tap, int64_t) {
            const Vec<C> v = from.read(pixel + i, left);
            MaskOf<C> better =
                (MaskOf<C>)(v > most) | ((MaskOf<C>)(v != v) & (MaskOf<C>)(most == most));
            if (first) better = ~MaskOf<C>{};
            first = false;
            most = better ? v : most;
            at = better ? MaskOf<C>{} + static_cast<std::remove_cvref_t<decltype(at[0])>>(tap) : at;
          });
          for (int64_t k = 0; k < std::min<int64_t>(left, kLanes<C>); ++k) {
            numbers[column * p.channels + i + k] = static_cast<int32_t>(at[k]);
          }
          return most;
        });
  });
}

template <class C>
void average_pool(const RunContext& c, const Pool& p, const C* x, C* y) {
  const int64_t in = p.input_pixels() * p.channels, row_elements = p.columns.output * p.channels;
  by_channels<C>(p, [&]<bool kWhole>(std::bool_constant<kWhole>) {
    for_output_rows(c, p, p.cost(), [&](int64_t image, int64_t row) {
      const Span<const C, kWhole> from = span<kWhole>(x + image * in, in);
      reduce_row<kWhole>(
          p, row, y + (image * p.output_rows() + row) * row_elements,
          [&](const Slab& r, const WindowRange& s, int64_t column, int64_t i, int64_t left) {
            Vec<C> sum{};
            for_taps(
                p, r, s, [&](int64_t pixel, int64_t, int64_t) __attribute__((always_inline)) {
                  sum += from.read(pixel + i, left);
                });
            return sum / static_cast<C>(r.count() * (s.end - s.begin));
          });
    });
  });
}

template <class C>
void max_pool_gradient(const RunContext& c, const Pool& p, const C* x, const C* y, const C* dy,
                       C* dx) {
  const int64_t in = p.input_pixels() * p.channels, out = p.output_pixels() * p.channels;
  const bool stored = tiled(p.planes) && tiled(p.rows) && tiled(p.columns);
  by_channels<C>(p, [&]<bool kWhole>(std::bool_constant<kWhole>) {
    for_images(c, p, 2 * p.cost(), [&](int64_t image) {
      if (stored) {
        max_gradient_of_image<C, true, kWhole>(p, x + image * in, y + image * out, dy + image * out,
                                               dx + image * in);
      } else {
        max_gradient_of_image<C, false, kWhole>(p, x + image * in, y + image * out,
                                                dy + image * out, dx + image * in);
      }
    });
  });
}

template <class C>
void max_pool_second_gradient(const RunContext& c, const Pool& p, const C* x, const C* y,
                              const C* g, C* out) {
  const int64_t in = p.input_pixels() * p.channels, row_elements = p.columns.output * p.channels;
  for_output_rows(c, p, 2 * p.cost(), [&](int64_t image, int64_t row) {
    const Span<const C, false> from = span<false>(x + image * in, in),
                               second = span<false>(g + image * in, in);
    const int64_t at = (image * p.output_rows() + row) * row_elements;
    const Span<const C, false> pooled = span<false>(y + at, row_elements);
    reduce_row<false>(
        p, row, out + at,
        [&](const Slab& r, const WindowRange& s, int64_t column, int64_t i, int64_t left) {
          const Vec<C> largest = pooled.read(column * p.channels + i, left);
          MaskOf<C> taken{};
          Vec<C> picked{};
          for_taps(
              p, r, s, [&](int64_t pixel, int64_t, int64_t) __attribute__((always_inline)) {
                const MaskOf<C> first = first_maxima<C>(from.read(pixel + i, left), largest, taken);
                picked = first ? second.read(pixel + i, left) : picked;
              });
          return picked;
        });
  });
}

template <class C>
void average_pool_gradient(const RunContext& c, const Pool& p, const C* dy, C* dx) {
  const int64_t in = p.input_pixels() * p.channels, out = p.output_pixels() * p.channels;
  for_images(c, p, p.cost(), [&](int64_t image) {
    const Span<const C, false> gradient = span<false>(dy + image * out, out);
    const Span<C, false> to = span<false>(dx + image * in, in);
    std::fill(to.data, to.end, C(0));
    for (int64_t row = 0; row < p.output_rows(); ++row) {
      const Slab r(p, row);
      for (int64_t column = 0; column < p.columns.output; ++column) {
        const WindowRange s(p.columns, column);
        const C count = static_cast<C>(r.count() * (s.end - s.begin));
        for (int64_t i = 0; i < p.channels; i += kLanes<C>) {
          const int64_t left = p.channels - i,
                        at = (row * p.columns.output + column) * p.channels + i;
          const Vec<C> share = masked<C>(first_lanes<C>(left), gradient.read(at, left) / count);
          for_taps(
              p, r, s, [&](int64_t pixel, int64_t, int64_t row_end) __attribute__((always_inline)) {
                to.write(pixel + i, to.read(pixel + i, left) + share, left, row_end);
              });
        }
      }
    }
  });
}

#define TREENAIL_POOL(C)                                                                        \
  template void max_pool(const RunContext&, const Pool&, const C*, C*);                         \
  template void average_pool(const RunContext&, const Pool&, const C*, C*);                     \
  template void max_pool_taps(const RunContext&, const Pool&, const C*, C*, int32_t*);          \
  template void max_pool_gradient(const RunContext&, const Pool&, const C*, const C*, const C*, \
                                  C*);                                                          \
  template void max_pool_second_gradient(const RunContext&, const Pool&, const C*, const C*,    \
                                         const C*, C*);                                         \
  template void average_pool_gradient(const RunContext&, const Pool&, const C*, C*);
TREENAIL_POOL(float)
TREENAIL_POOL(double)
#undef TREENAIL_POOL

}  // namespace treenail::cpu
