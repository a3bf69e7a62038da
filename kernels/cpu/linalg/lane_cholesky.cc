// SPDX-License-Identifier: Apache-2.0
// Cholesky factors and triangular systems of small matrices, one per vector lane. Larger ones:
// kernels/host/linalg/cholesky.cc.
#include "kernels/cpu/linalg/lane_cholesky.h"

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

template <class T>
KernelPtr prepare_cholesky(const PrepareContext& p) {
  const host::MatrixBatch m(p.input_shape(0));
  if (m.rows > kMostLaneRows || m.elements() * m.count == 0) return host::dense_cholesky(p);
  const auto n = static_cast<double>(m.rows);
  const double cost = group_cost(4 * n * n, n * n * n / 3);
  return make_kernel(
      [m, cost](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const to = host::matrices<T>(c.output(0));
        const int64_t size = m.elements();
        const bool streaming = streams_lanes(to, m.count, size);
        each_group<T, 2>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneNumber<T> a[2][kMostLaneRows * kMostLaneRows];
          LaneMask<T> failed[2];
          const Halves<T> halves(first, count);
          for (int g = 0; g < 2; ++g) {
            pack_lanes(from + halves.first[g] * size, halves.count[g], size, a[g]);
          }
          factor<T, 2>({a[0], a[1]}, m.rows, failed);
          for (int g = 0; g < halves.groups; ++g) {
            refuse_lanes(failed[g], halves.count[g], halves.first[g], host::kNotPositiveDefinite,
                         m.batch);
            unpack_lanes(a[g], halves.count[g], size, to + halves.first[g] * size, streaming);
          }
        });
      },
      cost * static_cast<double>(m.count) / (2 * kGroup<T>));
}

template <class T>
KernelPtr prepare_triangular_solve(const PrepareContext& p) {
  const host::MatrixBatch m(p.input_shape(0)), rhs(p.output_shape(0));
  const int64_t n = m.rows, k = rhs.columns;
  if (n > kMostLaneRows || k > kMostLaneColumns || rhs.count * rhs.elements() == 0) {
    return host::dense_triangular_solve(p);
  }
  const bool adjoint = p.op().get_bool("adjoint"), lower = p.op().get_bool("lower") != adjoint;
  const auto rows = static_cast<double>(n), columns = static_cast<double>(k);
  const double cost = group_cost(rows * (rows + 2 * columns), rows * rows * columns / 2);
  return make_kernel(
      [=](RunContext& c) {
        const T* const left = host::matrices<T>(c.input(0));
        const T* const right = host::matrices<T>(c.input(1));
        T* const to = host::matrices<T>(c.output(0));
        each_group<T>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneNumber<T> a[kMostLaneRows * kMostLaneRows], x[kMostLaneRows * kMostLaneColumns];
          pack_lanes(left + first * n * n, count, n * n, a);
          pack_lanes(right + first * n * k, count, n * k, x);
          if (adjoint) take_adjoint(a, n);
          refuse_lanes(substitute<T>(a, lower, n, k, x), count, first, host::kMatrixNotInvertible,
                       m.batch);
          unpack_lanes(x, count, n * k, to + first * n * k);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<T>);
}

}  // namespace

void register_lane_cholesky_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("Cholesky", {{"T", {dtype}}}, prepare_cholesky<T>);
    r.add("MatrixTriangularSolve", {{"T", {dtype}}}, prepare_triangular_solve<T>);
  });
}

}  // namespace treenail::cpu
