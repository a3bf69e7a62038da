// SPDX-License-Identifier: Apache-2.0
// LayerNorm and its gradient, row by row over the last axis, in float or double. The variance is
// taken from the deviations in a second pass over the row, which is in cache, so that a large mean
// costs no digits. Gradients of scale and offset are sums over rows: pieces of rows, cut by the
// shape alone, each sum their own, and the pieces are added in order.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/normalization/last_axis.h"

namespace treenail::cpu {
namespace {

template <class C>
using RowVec = Vec256<C>;  // most of the work is reading and writing memory

template <class C>
struct Statistics {
  C mean, inverse;  // of the deviation: 1 / sqrt(variance + epsilon)
};

template <class C>
Statistics<C> statistics(const C* x, int64_t n, C epsilon) {
  const C count = static_cast<C>(n);
  const C mean =
      sum_over<RowVec<C>>(x, n, C(0), [](RowVec<C> v, int64_t, int64_t) { return v; }) / count;
  const C squares = sum_over<RowVec<C>>(x, n, mean, [&](RowVec<C> v, int64_t, int64_t) {
    const RowVec<C> d = v - mean;
    return d * d;
  });
  return {mean, 1 / std::sqrt(squares / count + epsilon)};
}

// y may be x.
template <class C>
Statistics<C> normalize_row(const C* x, const C* scale, const C* offset, C epsilon, C* y,
                            int64_t n) {
  const Statistics<C> s = statistics(x, n, epsilon);
  for_vectors<RowVec<C>>(x, n, C(0), [&](RowVec<C> v, int64_t i, int64_t some) {
    const RowVec<C> h = (v - s.mean) * s.inverse;
    store_some(y + i,
               mul_add(h, beside<RowVec<C>>(scale, i, some), beside<RowVec<C>>(offset, i, some)),
               some);
  });
  return s;
}

template <class C>
std::unique_ptr<Kernel> prepare_layer_norm(const PrepareContext& p) {
  const Rows r(p.input_shape(0));
  const C epsilon = static_cast<C>(p.op().get_float("epsilon"));
  const int64_t batch = p.output_shape(1).num_elements();
  return make_kernel(
      [r, epsilon, batch](RunContext& c) {
        C *const mean = c.output(1).data<C>(), *const inverse = c.output(2).data<C>();
        if (r.columns == 0) {  // the mean of nothing
          std::fill_n(mean, batch, C(0) / C(0));
          std::fill_n(inverse, batch, C(0) / C(0));
          return;
        }
        const C *scale = c.input(1).data<C>(), *offset = c.input(2).data<C>();
        float* const scratch = reinterpret_cast<float*>(c.scratch());
        c.parallel_for(r.rows, r.grain, r.cost_per_row, [&](int64_t first, int64_t last) {
          const int64_t begin = first * r.columns, end = last * r.columns;
          const C* x = read_rows<C>(c.input(0), scratch, begin, end);
          C* y = written_rows<C>(c.output(0), scratch);
          for (int64_t i = first; i < last; ++i) {
            const int64_t at = i * r.columns;
            const Statistics<C> s =
                normalize_row(x + at, scale, offset, epsilon, y + at, r.columns);
            mean[i] = s.mean;
            inverse[i] = s.inverse;
          }
          finish_rows(c.output(0), scratch, begin, end);
        });
      },
      r.cost, scratch_for(p.input_type(0), r, 1));
}

// With h = (x - mean) inverse and u = scale g: dx = inverse (u - mean(u) - h mean(u h)); adds g h
// and g to the sums of scale and offset. dx may be g.
template <class C>
void gradient_row(const C* g, const C* x, const C* scale, Statistics<C> s, C* dx, C* dscale,
                  C* doffset, int64_t n) {
  const auto normal = [&](int64_t i, int64_t some) {
    return (beside<RowVec<C>>(x, i, some) - s.mean) * s.inverse;
  };
  const C count = static_cast<C>(n);
  const C along = sum_over<RowVec<C>>(g, n, C(0), [&](RowVec<C> v, int64_t i, int64_t some) {
    return v * beside<RowVec<C>>(scale, i, some);
  });
  const C across = sum_over<RowVec<C>>(g, n, C(0), [&](RowVec<C> v, int64_t i, int64_t some) {
    return v * beside<RowVec<C>>(scale, i, some) * normal(i, some);
  });
  const C mean_u = along / count, mean_uh = across / count;
  for_vectors<RowVec<C>>(g, n, C(0), [&](RowVec<C> v, int64_t i, int64_t some) {
    const RowVec<C> h = normal(i, some), u = v * beside<RowVec<C>>(scale, i, some);
    store_some(dscale + i, beside<RowVec<C>>(dscale, i, some) + v * h, some);
    store_some(doffset + i, beside<RowVec<C>>(doffset, i, some) + v, some);
    store_some(dx + i, s.inverse * (u - mean_u - h * mean_uh), some);
  });
}

// Pieces of rows with sums of their own. There are few, so that adding them up is little work.
struct Pieces {
  int64_t per_piece, count;
  explicit Pieces(const Rows& r) {
    constexpr int64_t kMost = 64;
    per_piece = std::max({int64_t{16}, r.grain, (r.rows + kMost - 1) / kMost});
    count = (r.rows + per_piece - 1) / per_piece;
  }
};

template <class C>
void add_pieces(const C* sums, int64_t pieces, int64_t n, C* dscale, C* doffset) {
  std::fill_n(dscale, n, C(0));
  std::fill_n(doffset, n, C(0));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const C* const from = sums + piece * 2 * n;
    for (int64_t i = 0; i < n; ++i) dscale[i] += from[i];
    for (int64_t i = 0; i < n; ++i) doffset[i] += from[n + i];
  }
}

template <class C>
std::unique_ptr<Kernel> prepare_layer_norm_grad(const PrepareContext& p) {
  const Rows r(p.input_shape(0));
  const Pieces pieces(r);
  const int64_t n = p.input_shape(2).num_elements();
  const size_t for_sums = static_cast<size_t>(r.columns > 0 ? pieces.count * 2 * n : 0) * sizeof(C);
  return make_kernel(
      [r, pieces, n](RunContext& c) {
        C *const dscale = c.output(1).data<C>(), *const doffset = c.output(2).data<C>();
        if (r.columns == 0) return;
        C* const sums = reinterpret_cast<C*>(c.scratch());
        float* const for_g = reinterpret_cast<float*>(sums + pieces.count * 2 * n);
        float* const for_x = for_g + r.rows * n;
        const C *scale = c.input(2).data<C>(), *mean = c.input(3).data<C>(),
                *inverse = c.input(4).data<C>();
        c.run_chunks(pieces.count, 2 * r.cost, [&](int64_t piece) {
          const int64_t first = piece * pieces.per_piece,
                        last = std::min(first + pieces.per_piece, r.rows);
          C* const piece_sums = sums + piece * 2 * n;
          std::fill_n(piece_sums, 2 * n, C(0));
          const C* g = read_rows<C>(c.input(0), for_g, first * n, last * n);
          const C* x = read_rows<C>(c.input(1), for_x, first * n, last * n);
          C* dx = written_rows<C>(c.output(0), for_g);
          for (int64_t i = first; i < last; ++i) {
            gradient_row(g + i * n, x + i * n, scale, {mean[i], inverse[i]}, dx + i * n, piece_sums,
                         piece_sums + n, n);
          }
          finish_rows(c.output(0), for_g, first * n, last * n);
        });
        add_pieces(sums, pieces.count, n, dscale, doffset);
      },
      2 * r.cost, for_sums + scratch_for(p.input_type(0), r, 2));
}

template <class C>
void register_types(KernelRegistry& r) {
  const std::vector<TypeConstraint> types = {{"T", stored_types<C>()}, {"U", {dtype_of<C>}}};
  r.add("LayerNorm", types, prepare_layer_norm<C>);
  r.add("LayerNormGrad", types, prepare_layer_norm_grad<C>);
}

}  // namespace

void register_layer_norm_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
