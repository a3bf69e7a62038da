// SPDX-License-Identifier: Apache-2.0
// LayerNorm and its gradient: a group of lanes for each row of n elements. The variance is taken
// from the deviations, so that a large mean costs no digits; rows are in cache when they are read
// again. Gradients of scale and offset are sums down columns.
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/normalization/columns.h"
#include "kernels/cuda/normalization/rows.h"

namespace treenail::gpu {

// The sum of f(i) over a row, for each lane of its group; `active`: it has a row.
template <class C, class F>
TN_DEVICE C sum_of_row(bool active, int64_t n, int lanes, C* part, F f) {
  C sum = 0;
  for (int64_t i = lane_of(lanes); active && i < n; i += lanes) sum += f(i);
  return over_group(part, sum, lanes, [](C a, C b) { return a + b; });
}

// y may be x. A row of no elements has the mean 0 / 0.
template <class S, class C = Computed<S>>
TN_DEVICE void layer_norm(int64_t rows, int64_t n, int lanes, double epsilon, const S* x,
                          const C* scale, const C* offset, S* y, C* mean, C* inverse) {
  TN_SHARED(C, part, kMostThreads);
  const C count = static_cast<C>(n);
  for_rows(rows, lanes, [&](int64_t row) {
    const bool active = row < rows;
    const S* const from = x + row * n;
    const C m =
        sum_of_row(active, n, lanes, part, [&](int64_t i) { return Stored<S>::widen(from[i]); }) /
        count;
    const C squares = sum_of_row(active, n, lanes, part, [&](int64_t i) {
      const C deviation = Stored<S>::widen(from[i]) - m;
      return deviation * deviation;
    });
    const C r = C(1) / square_root(squares / count + static_cast<C>(epsilon));
    for (int64_t i = lane_of(lanes); active && i < n; i += lanes) {
      const C h = (Stored<S>::widen(from[i]) - m) * r;
      y[row * n + i] = Stored<S>::narrow(h * scale[i] + offset[i]);
    }
    if (!active || lane_of(lanes) != 0) return;
    mean[row] = m;
    inverse[row] = r;
  });
}

// With h = (x - mean) inverse and u = scale g: dx = inverse (u - mean(u) - h mean(u h)). dx may be
// g.
template <class S, class C = Computed<S>>
TN_DEVICE void layer_norm_gradient(int64_t rows, int64_t n, int lanes, const S* g, const S* x,
                                   const C* scale, const C* mean, const C* inverse, S* dx) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  const C count = static_cast<C>(n);
  for_rows(rows, lanes, [&](int64_t row) {
    const bool active = row < rows;
    const C m = active ? mean[row] : C(0), r = active ? inverse[row] : C(0);
    const auto normal = [&](int64_t i) { return (Stored<S>::widen(x[row * n + i]) - m) * r; };
    const auto scaled = [&](int64_t i) { return Stored<S>::widen(g[row * n + i]) * scale[i]; };
    Sums<C> all = {};
    for (int64_t i = lane_of(lanes); active && i < n; i += lanes)
      all = add(all, {scaled(i), scaled(i) * normal(i)});
    all = over_group(part, all, lanes, Add());
    const C mean_u = all.first / count, mean_uh = all.second / count;
    for (int64_t i = lane_of(lanes); active && i < n; i += lanes) {
      const C d = scaled(i) - mean_u - normal(i) * mean_uh;
      dx[row * n + i] = Stored<S>::narrow(r * d);
    }
  });
}

// Of pieces of the columns the sums of g h and of g.
template <class S, class C = Computed<S>>
TN_DEVICE void layer_norm_sums(const ColumnSpace& s, const S* g, const S* x, const C* mean,
                               const C* inverse, Sums<C>* pieces) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  for_pieces(s, [&](const Piece& piece) {
    Sums<C> all = {};
    for_elements(s, piece, [&](const Elements& e) {
      C gradients[kTogether], values[kTogether];
      read_elements(g, e, gradients);
      read_elements(x, e, values);
      for (int k = 0; k < kTogether; ++k) {
        if (k >= e.count) continue;
        const int64_t row = e.first + k * s.lanes;
        all = add(all, {gradients[k] * ((values[k] - mean[row]) * inverse[row]), gradients[k]});
      }
    });
    all = over_lanes(s, part, all, Add());
    if (leads(s, piece)) pieces[piece.result(s)] = all;
  });
}

template <class C>
TN_DEVICE void add_sums(const ColumnSpace& s, int lanes, const Sums<C>* pieces, C* first,
                        C* second) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  const auto take = [](const Sums<C>& piece, int64_t) { return piece; };
  for_columns(s, lanes, part, pieces, take, Add(), [&](int64_t column, const Sums<C>& all) {
    if (lane_of(lanes) != 0) return;
    first[column] = all.first;
    second[column] = all.second;
  });
}

#define TN_LAYER_NORM(S, type)                                                                 \
  TN_KERNEL(layer_norm_##type, int64_t rows, int64_t n, int lanes, double epsilon, const S* x, \
            const Computed<S>* scale, const Computed<S>* offset, S* y, Computed<S>* mean,      \
            Computed<S>* inverse) {                                                            \
    layer_norm(rows, n, lanes, epsilon, x, scale, offset, y, mean, inverse);                   \
  }                                                                                            \
  TN_KERNEL(layer_norm_gradient_##type, int64_t rows, int64_t n, int lanes, const S* g,        \
            const S* x, const Computed<S>* scale, const Computed<S>* mean,                     \
            const Computed<S>* inverse, S* dx) {                                               \
    layer_norm_gradient(rows, n, lanes, g, x, scale, mean, inverse, dx);                       \
  }                                                                                            \
  TN_KERNEL(layer_norm_sums_##type, ColumnSpace s, const S* g, const S* x,                     \
            const Computed<S>* mean, const Computed<S>* inverse, Sums<Computed<S>>* pieces) {  \
    layer_norm_sums(s, g, x, mean, inverse, pieces);                                           \
  }
TN_LAYER_NORM(float, float32)
TN_LAYER_NORM(double, float64)
TN_LAYER_NORM(Float16, float16)
TN_LAYER_NORM(BFloat16, bfloat16)

#define TN_ADD_SUMS(C, type)                                                                   \
  TN_KERNEL(add_column_sums_##type, ColumnSpace s, int lanes, const Sums<C>* pieces, C* first, \
            C* second) {                                                                       \
    add_sums(s, lanes, pieces, first, second);                                                 \
  }
TN_ADD_SUMS(float, float32)
TN_ADD_SUMS(double, float64)

}  // namespace treenail::gpu
