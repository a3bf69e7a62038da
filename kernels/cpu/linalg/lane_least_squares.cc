// SPDX-License-Identifier: Apache-2.0
// Least squares of small matrices, one per vector lane, in double precision whatever the dtype: by
// normal equations, which square the condition, or by singular values. Larger ones:
// kernels/host/linalg/least_squares.cc.
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_cholesky.h"
#include "kernels/cpu/linalg/lane_svd.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

// A group of matrices A of Ts and their right sides.
template <class T>
struct LaneLeastSquares {
  using W = host::WideNumber<T>;
  using L = LaneNumber<W>;
  using R = LaneReal<W>;
  L t[kMostLaneRows * kMostLaneRows];         // A or, where that has more columns, A^H
  L rhs[kMostLaneRows * kMostLaneColumns];    // overwritten
  L x[kMostLaneRows * kMostLaneColumns];      // the solution
  L inner[kMostLaneRows * kMostLaneColumns];  // with as many rows as t has columns
  bool wide;
  int64_t rows, columns, k;  // of t; right sides

  LaneLeastSquares(const host::MatrixBatch& a, int64_t right_sides)
      : wide(a.rows < a.columns),
        rows(std::max(a.rows, a.columns)),
        columns(std::min(a.rows, a.columns)),
        k(right_sides) {}

  // x = (t^H t + l)^-1 t^H b, or t (t^H t + l)^-1 b where t is A^H. A lane of the result is set
  // where the Gram matrix is not positive definite.
  LaneMask<W> by_normal_equations(double l) {
    L gram[kMostLaneRows * kMostLaneRows];
    multiply_adjoint(t, t, columns, rows, columns, gram);
    for (int64_t i = 0; i < columns; ++i) {
      gram[i * (columns + 1)] = gram[i * (columns + 1)] + constant<W>(l);
    }
    LaneMask<W> failed[1];
    factor<W, 1>({gram}, columns, failed);
    L* const z = wide ? rhs : x;
    if (!wide) multiply_adjoint(t, rhs, columns, rows, k, z);
    substitute<W>(gram, true, columns, k, z);
    take_adjoint(gram, columns);
    substitute<W>(gram, false, columns, k, z);
    if (wide) multiply(t, z, rows, columns, k, x);
    return failed[0];
  }

  // x = v s^+ u^H b, or u s^+ v^H b where t is A^H. Singular values up to the cutoff of
  // tn.linalg.pinv count as zero. A lane of the result is set where there are none.
  LaneMask<W> by_singular_values() {
    LaneSvd<W> svd(rows, columns, columns);
    std::copy_n(t, rows * columns, svd.qr.a);
    svd.solve();
    multiply_adjoint(wide ? svd.v : svd.qr.q, rhs, columns, wide ? columns : rows, k, inner);
    constexpr double kEpsilon = std::numeric_limits<RealOf<T>>::epsilon();
    const R cutoff = (10 * static_cast<double>(rows) * kEpsilon) * real_part(svd.values[0]);
    for (int64_t s = 0; s < columns; ++s) {
      const R value = real_part(svd.values[s]);
      const R factor = value > cutoff ? splat<R>(1) / value : R{};
      for (int64_t c = 0; c < k; ++c) inner[s * k + c] = inner[s * k + c] * factor;
    }
    multiply(wide ? svd.qr.q : svd.v, inner, wide ? rows : columns, columns, k, x);
    return svd.turned;
  }
};

template <class T>
std::unique_ptr<Kernel> prepare_least_squares(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch a(p.input_shape(0)), b(p.input_shape(1)), x(p.output_shape(0));
  const int64_t longer = std::max(a.rows, a.columns);
  if (longer > kMostLaneRows || x.columns > kMostLaneColumns ||
      a.elements() * x.count * x.elements() == 0) {
    return host::dense_least_squares(p);
  }
  const bool fast = p.op().get_bool("fast");
  const auto n = static_cast<double>(longer), k = static_cast<double>(x.columns);
  const double cost = group_cost(2 * n * (n + k), n * n * (fast ? 2 * n + k : 80 * n));
  return make_kernel(
      [=](RunContext& c) {
        const T* const matrices = host::matrices<T>(c.input(0));
        const T* const rhs = host::matrices<T>(c.input(1));
        T* const to = host::matrices<T>(c.output(0));
        const double regularizer = fast ? host::l2_regularizer(c) : 0;
        each_group<W>(c, a.count, cost, [&](int64_t first, int64_t count) {
          LaneLeastSquares<T> group(a, x.columns);
          pack_upright(matrices + first * a.elements(), count, a, group.t);
          pack_lanes(rhs + first * b.elements(), count, b.elements(), group.rhs);
          refuse_lanes(fast ? group.by_normal_equations(regularizer) : group.by_singular_values(),
                       count, first, fast ? host::kRankDeficient : host::kNoSingularValues,
                       a.batch);
          unpack_lanes(group.x, count, x.elements(), to + first * x.elements());
        });
      },
      cost * static_cast<double>(a.count) / kGroup<W>);
}

}  // namespace

void register_lane_least_squares_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("MatrixSolveLs", {{"T", {dtype}}}, prepare_least_squares<T>);
  });
}

}  // namespace treenail::cpu
