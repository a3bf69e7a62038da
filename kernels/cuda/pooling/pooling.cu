// SPDX-License-Identifier: Apache-2.0
// Maximum and average over windows. A window with a NaN gives NaN; of equal maxima the first one's
// place counts.
#include "kernels/cuda/pooling/pool_windows.h"

#include "kernels/cuda/language/numbers.h"

namespace treenail::gpu {

template <int kN, class S>
TN_DEVICE void max_pool(const PoolSpace& p, const S* x, S* y) {
  for_pixels<true, kN>(p, [&](const Pixel& pixel, int64_t to) {
    const Window w(p, pixel);
    Values<S, kN> most;
    for (int k = 0; k < kN; ++k) most.of[k] = kLowest<Computed<S>>;
    for_elements(p, w, pixel.image, pixel.channel, [&](int64_t at) {
      const Values<S, kN> v = read<kN>(x + at);
      for (int k = 0; k < kN; ++k)
        most.of[k] = v.of[k] > most.of[k] || v.of[k] != v.of[k] ? v.of[k] : most.of[k];
      return true;
    });
    write<kN>(y + to, most);
  });
}

template <int kN, class S>
TN_DEVICE void average_pool(const PoolSpace& p, const S* x, S* y) {
  for_pixels<true, kN>(p, [&](const Pixel& pixel, int64_t to) {
    const Window w(p, pixel);
    Values<S, kN> sum = {};
    for_elements(p, w, pixel.image, pixel.channel, [&](int64_t at) {
      const Values<S, kN> v = read<kN>(x + at);
      for (int k = 0; k < kN; ++k) sum.of[k] += v.of[k];
      return true;
    });
    const auto count = static_cast<Computed<S>>(w.size());
    for (int k = 0; k < kN; ++k) sum.of[k] /= count;
    write<kN>(y + to, sum);
  });
}

// Places are counted in the image, or in the whole batch.
template <class S, class Index>
TN_DEVICE void max_pool_positions(const PoolSpace& p, bool with_batch, const S* x, S* y,
                                  Index* positions) {
  using C = Computed<S>;
  for_pixels<true, 1>(p, [&](const Pixel& pixel, int64_t to) {
    const Window w(p, pixel);
    int64_t found = -1;
    C most = 0;
    for_elements(p, w, pixel.image, pixel.channel, [&](int64_t at) {
      const C v = Stored<S>::widen(x[at]);
      if (found < 0 || v > most || (v != v && most == most)) {
        found = at;
        most = v;
      }
      return true;
    });
    y[to] = Stored<S>::narrow(most);
    const int64_t begin = with_batch ? 0 : place<false>(p, pixel.image, 0, 0, 0, 0);
    positions[to] = static_cast<Index>(found - begin);
  });
}

#define TN_POSITIONS(S, type, Index, index)                                                      \
  TN_KERNEL(max_pool_positions_##type##_##index, PoolSpace p, bool with_batch, const S* x, S* y, \
            Index* positions) {                                                                  \
    max_pool_positions(p, with_batch, x, y, positions);                                          \
  }
#define TN_POOLING(S, type)                                                                    \
  TN_KERNEL(max_pool_##type, PoolSpace p, const S* x, S* y) {                                  \
    by_channels<S>(                                                                            \
        p, [&]<int kN>(std::integral_constant<int, kN>) { max_pool<kN>(p, x, y); }, x, y);     \
  }                                                                                            \
  TN_KERNEL(average_pool_##type, PoolSpace p, const S* x, S* y) {                              \
    by_channels<S>(                                                                            \
        p, [&]<int kN>(std::integral_constant<int, kN>) { average_pool<kN>(p, x, y); }, x, y); \
  }                                                                                            \
  TN_POSITIONS(S, type, int32_t, int32)                                                        \
  TN_POSITIONS(S, type, int64_t, int64)
TN_POOLING(float, float32)
TN_POOLING(double, float64)
TN_POOLING(Float16, float16)
TN_POOLING(BFloat16, bfloat16)

}  // namespace treenail::gpu
