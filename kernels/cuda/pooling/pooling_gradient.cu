// SPDX-License-Identifier: Apache-2.0
// Gradients of pooling. An element of the input gathers from the windows that cover it, in their
// order: nothing is added to by two threads.
#include "kernels/cuda/pooling/pool_windows.h"

namespace treenail::gpu {

// Whether the element at `own` is the first of its window to be its maximum.
template <class S>
TN_DEVICE bool is_first_maximum(const PoolSpace& p, const Window& w, int64_t image, int64_t channel,
                                const S* x, int64_t own, Computed<S> largest) {
  bool first = true;
  for_elements(p, w, image, channel, [&](int64_t at) {
    if (at == own) return false;
    first = !is_maximum(Stored<S>::widen(x[at]), largest);
    return first;
  });
  return first;
}

// Of the channels whose bits are set, those whose element is the first such of its window.
template <int kN, class S>
TN_DEVICE unsigned first_maxima(unsigned maxima, const PoolSpace& p, const Window& w,
                                const Pixel& pixel, const S* x, int64_t own, const S* largest) {
  TN_NO_UNROLL
  for (int k = 0; k < kN; ++k) {
    if ((maxima >> k & 1u) != 0 && !is_first_maximum(p, w, pixel.image, pixel.channel + k, x,
                                                     own + k, Stored<S>::widen(largest[k])))
      maxima &= ~(1u << k);
  }
  return maxima;
}

// Few elements are maxima: only these look at their windows, up to where they are.
template <int kN, class S>
TN_DEVICE void max_pool_gradient(const PoolSpace& p, const S* x, const S* y, const S* dy, S* dx) {
  for_pixels<false, kN>(p, [&](const Pixel& pixel, int64_t own) {
    const Values<S, kN> v = read<kN>(x + own);
    Values<S, kN> sum = {};
    for_windows_over(p, pixel, [&](int64_t plane, int64_t row, int64_t column) {
      const int64_t from = place<true>(p, pixel.image, plane, row, column, pixel.channel);
      const Values<S, kN> largest = read<kN>(y + from);
      unsigned maxima = 0;
      for (int k = 0; k < kN; ++k)
        maxima |= static_cast<unsigned>(is_maximum(v.of[k], largest.of[k])) << k;
      if (maxima == 0) return;
      const Window w(p, plane, row, column);
      maxima = first_maxima<kN>(maxima, p, w, pixel, x, own, y + from);
      for (int k = 0; k < kN; ++k) {
        if ((maxima >> k & 1u) != 0) sum.of[k] += Stored<S>::widen(dy[from + k]);
      }
    });
    write<kN>(dx + own, sum);
  });
}

template <int kN, class S>
TN_DEVICE void average_pool_gradient(const PoolSpace& p, const S* dy, S* dx) {
  for_pixels<false, kN>(p, [&](const Pixel& pixel, int64_t own) {
    Values<S, kN> sum = {};
    for_windows_over(p, pixel, [&](int64_t plane, int64_t row, int64_t column) {
      const Values<S, kN> gradient =
          read<kN>(dy + place<true>(p, pixel.image, plane, row, column, pixel.channel));
      const auto count = static_cast<Computed<S>>(Window(p, plane, row, column).size());
      for (int k = 0; k < kN; ++k) sum.of[k] += gradient.of[k] / count;
    });
    write<kN>(dx + own, sum);
  });
}

// Of g, which is like the input, what lies at each window's first maximum.
template <int kN, class S>
TN_DEVICE void max_pool_second_gradient(const PoolSpace& p, const S* x, const S* y, const S* g,
                                        S* out) {
  for_pixels<true, kN>(p, [&](const Pixel& pixel, int64_t to) {
    const Values<S, kN> largest = read<kN>(y + to);
    Values<S, kN> picked = {};
    unsigned missing = (1u << kN) - 1;  // a bit for each channel
    for_elements(p, Window(p, pixel), pixel.image, pixel.channel, [&](int64_t at) {
      const Values<S, kN> v = read<kN>(x + at);
      for (int k = 0; k < kN; ++k) {
        if ((missing >> k & 1u) == 0 || !is_maximum(v.of[k], largest.of[k])) continue;
        picked.of[k] = Stored<S>::widen(g[at + k]);
        missing &= ~(1u << k);
      }
      return missing != 0;
    });
    write<kN>(out + to, picked);
  });
}

#define TN_POOLING_GRADIENT(S, type)                                                               \
  TN_KERNEL(max_pool_gradient_##type, PoolSpace p, const S* x, const S* y, const S* dy, S* dx) {   \
    by_channels<S>(                                                                                \
        p,                                                                                         \
        [&]<int kN>(std::integral_constant<int, kN>) { max_pool_gradient<kN>(p, x, y, dy, dx); },  \
        x, y, dy, dx);                                                                             \
  }                                                                                                \
  TN_KERNEL(average_pool_gradient_##type, PoolSpace p, const S* dy, S* dx) {                       \
    by_channels<S>(                                                                                \
        p, [&]<int kN>(std::integral_constant<int, kN>) { average_pool_gradient<kN>(p, dy, dx); }, \
        dy, dx);                                                                                   \
  }                                                                                                \
  TN_KERNEL(max_pool_second_gradient_##type, PoolSpace p, const S* x, const S* y, const S* g,      \
            S* out) {                                                                              \
    by_channels<S>(                                                                                \
        p,                                                                                         \
        [&]<int kN>(std::integral_constant<int, kN>) {                                             \
          max_pool_second_gradient<kN>(p, x, y, g, out);                                           \
        },                                                                                         \
        x, y, g, out);                                                                             \
  }
TN_POOLING_GRADIENT(float, float32)
TN_POOLING_GRADIENT(double, float64)
TN_POOLING_GRADIENT(Float16, float16)
TN_POOLING_GRADIENT(BFloat16, bfloat16)

}  // namespace treenail::gpu
