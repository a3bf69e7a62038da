// SPDX-License-Identifier: Apache-2.0
// LayerNorm and its gradient: a group of lanes for each row of n elements. The variance is taken
// from the deviations, so that a large mean costs no digits; rows are in cache when they are read
// again.
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

// Gradients, with h = (x - mean) inverse and u = scale g: dx = inverse (u - mean(u) - h mean(u h)),
// dscale sums g h over rows, doffset g. dx may be g.

// Where this thread's elements of a row lie, `tile` apart; none where it has no row.
TN_DEVICE Elements elements_of_row(const ColumnSpace& s, int64_t row, bool active) {
  Elements e;
  e.first = lane_of(s.tile);
  e.count = 0;
  for (int k = 0; k < kTogether; ++k) {
    const int64_t column = e.first + k * s.tile;
    e.at[k] = row * s.columns + column;
    e.count += active && column < s.columns ? 1 : 0;
  }
  return e;
}

// dx at these elements of a row, all of whose threads call; adds to the sums of their columns.
template <class S, class C = Computed<S>>
TN_DEVICE void gradient_of_row(const ColumnSpace& s, const Elements& e, C m, C r,
                               const C (&scale)[kTogether], const S* g, const S* x, S* dx,
                               Sums<C>* part, Sums<C> (&sums)[kTogether]) {
  C gradients[kTogether], normal[kTogether];
  read_elements(g, e, gradients);
  read_elements(x, e, normal);
  Sums<C> all = {};
  for (int k = 0; k < kTogether; ++k) {
    normal[k] = k < e.count ? (normal[k] - m) * r : C(0);
    sums[k] = add(sums[k], {gradients[k] * normal[k], gradients[k]});
    const C u = gradients[k] * scale[k];
    all = add(all, {u, u * normal[k]});
  }
  all = over_group(part, all, s.tile, Add());
  const C count = static_cast<C>(s.columns);
  const C mean_u = all.first / count, mean_uh = all.second / count;
  for (int k = 0; k < kTogether; ++k)
    gradients[k] = r * (gradients[k] * scale[k] - mean_u - normal[k] * mean_uh);
  write_elements(dx, e, gradients);
}

// Where a row fits into the registers of its lanes: everything from one reading. Pieces are of
// rows.
template <class S, class C = Computed<S>>
TN_DEVICE void short_rows_gradient(const ColumnSpace& s, const S* g, const S* x, const C* scale,
                                   const C* mean, const C* inverse, S* dx, Sums<C>* pieces) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  C factors[kTogether];
  read_elements(scale, elements_of_row(s, 0, true), factors);
  for (int64_t number = block(); number < s.pieces; number += blocks()) {
    const int64_t begin = number * s.piece, end = begin + piece_size(s, number);
    Sums<C> sums[kTogether] = {};
    TN_NO_UNROLL
    for (int64_t base = begin; base < end; base += s.lanes) {
      const int64_t row = base + group_of(s.tile);
      const bool active = row < end;
      const C m = active ? mean[row] : C(0), r = active ? inverse[row] : C(0);
      gradient_of_row(s, elements_of_row(s, row, active), m, r, factors, g, x, dx, part, sums);
    }
    for (int k = 0; k < kTogether; ++k) {
      const Sums<C> all = over_lanes(s, part, sums[k], Add());
      const int64_t column = thread() + k * s.tile;
      if (thread() < s.tile && column < s.columns) pieces[column * s.pieces + number] = all;
    }
  }
}

// Of longer ones.
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

#define TN_LAYER_NORM(S, type)                                                                    \
  TN_KERNEL(layer_norm_##type, int64_t rows, int64_t n, int lanes, double epsilon, const S* x,    \
            const Computed<S>* scale, const Computed<S>* offset, S* y, Computed<S>* mean,         \
            Computed<S>* inverse) {                                                               \
    layer_norm(rows, n, lanes, epsilon, x, scale, offset, y, mean, inverse);                      \
  }                                                                                               \
  TN_KERNEL(layer_norm_gradient_##type, int64_t rows, int64_t n, int lanes, const S* g,           \
            const S* x, const Computed<S>* scale, const Computed<S>* mean,                        \
            const Computed<S>* inverse, S* dx) {                                                  \
    layer_norm_gradient(rows, n, lanes, g, x, scale, mean, inverse, dx);                          \
  }                                                                                               \
  TN_KERNEL(layer_norm_short_gradient_##type, ColumnSpace s, const S* g, const S* x,              \
            const Computed<S>* scale, const Computed<S>* mean, const Computed<S>* inverse, S* dx, \
            Sums<Computed<S>>* pieces) {                                                          \
    short_rows_gradient(s, g, x, scale, mean, inverse, dx, pieces);                               \
  }                                                                                               \
  TN_KERNEL(layer_norm_sums_##type, ColumnSpace s, const S* g, const S* x,                        \
            const Computed<S>* mean, const Computed<S>* inverse, Sums<Computed<S>>* pieces) {     \
    layer_norm_sums(s, g, x, mean, inverse, pieces);                                              \
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
