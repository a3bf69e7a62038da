// SPDX-License-Identifier: Apache-2.0
// Short tridiagonal systems and products, one per vector lane, in double precision whatever the
// dtype. Longer ones: kernels/host/linalg/tridiagonal.cc.
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/cpu/linalg/lanes.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// The diagonals of a group, above, on and below the main one, and n rows of k numbers beside them.
// What lies beyond the matrices goes into no result.
template <class W>
struct LaneTridiagonal {
  using L = LaneNumber<W>;
  L diagonals[3 * kMostLaneRows];
  L x[kMostLaneRows * kMostLaneColumns];
  int64_t n, k;

  LaneTridiagonal(int64_t order, int64_t columns) : n(order), k(columns) {}

  const L& above(int64_t i) const { return diagonals[i]; }
  const L& main(int64_t i) const { return diagonals[n + i]; }
  const L& below(int64_t i) const { return diagonals[2 * n + i]; }

  // x holds the right sides and then the solutions. A lane of the result is set where a pivot is
  // zero.
  LaneMask<W> solve(bool pivoting) {
    Row row = {main(0), n > 1 ? above(0) : L{}, L{}};
    for (int64_t i = 0; i + 1 < n; ++i) row = eliminate(i, row, pivoting);
    upper_[n - 1] = row;
    LaneMask<W> singular = {};
    for (int64_t i = n - 1; i >= 0; --i) {
      singular |= is_zero(upper_[i].diagonal);
      substitute(i, pivoting);
    }
    return singular;
  }

  // to = A x.
  void multiply(L* to) const {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < k; ++c) {
        L sum = times(main(i), x[i * k + c]);
        if (i + 1 < n) sum = mul_add(above(i), x[(i + 1) * k + c], sum);
        if (i > 0) sum = mul_add(below(i), x[(i - 1) * k + c], sum);
        to[i * k + c] = sum;
      }
    }
  }

 private:
  // What a row of the upper factor has on the diagonal and after it: the second one where rows were
  // exchanged.
  struct Row {
    L diagonal, next, second;
  };
  Row upper_[kMostLaneRows];

  // Row i of the upper factor from what elimination has left there; the result: what it leaves in
  // the next row. The rows change places where the next one has the larger element in column i.
  Row eliminate(int64_t i, const Row& own, bool pivoting) {
    const L left = below(i + 1), beyond = i + 2 < n ? above(i + 1) : L{};
    const LaneMask<W> other = pivoting ? size_of(own.diagonal) < size_of(left) : LaneMask<W>{};
    const Row row = {choose(other, left, own.diagonal), choose(other, main(i + 1), own.next),
                     choose(other, beyond, L{})};
    upper_[i] = row;
    const L factor = times(choose(other, own.diagonal, left), reciprocal(row.diagonal));
    for (int64_t c = 0; c < k; ++c) {
      L& first = x[i * k + c];
      L& second = x[(i + 1) * k + c];
      exchange_where(other, first, second);
      second = mul_add(-factor, first, second);
    }
    return {mul_add(-factor, row.next, choose(other, own.next, main(i + 1))),
            mul_add(-factor, row.second, choose(other, L{}, beyond)), L{}};
  }

  void substitute(int64_t i, bool pivoting) {
    const Row& row = upper_[i];
    const L inverse = reciprocal(row.diagonal);
    for (int64_t c = 0; c < k; ++c) {
      L sum = x[i * k + c];
      if (i + 1 < n) sum = mul_add(-row.next, x[(i + 1) * k + c], sum);
      if (pivoting && i + 2 < n) {  // zero times infinity would be NaN
        const L more = mul_add(-row.second, x[(i + 2) * k + c], sum);
        sum = choose(is_zero(row.second), sum, more);
      }
      x[i * k + c] = times(sum, inverse);
    }
  }
};

bool is_short(const host::MatrixBatch& m) {
  return m.rows <= kMostLaneRows && m.columns <= kMostLaneColumns && m.count * m.elements() > 0;
}
double cost_of(const host::MatrixBatch& m) {
  const auto n = static_cast<double>(m.rows), k = static_cast<double>(m.columns);
  return group_cost(n * (3 + 2 * k), n * (30 + 6 * k));
}

template <class T>
KernelPtr prepare_solve(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch m(p.output_shape(0));
  if (!is_short(m)) return host::tridiagonal_solve(p);
  const bool pivoting = p.op().get_bool("partial_pivoting");
  const double cost = cost_of(m);
  return make_kernel(
      [=](RunContext& c) {
        const T* const diagonals = host::matrices<T>(c.input(0));
        const T* const rhs = host::matrices<T>(c.input(1));
        T* const to = host::matrices<T>(c.output(0));
        const int64_t n = m.rows, size = m.elements();
        each_group<W>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneTridiagonal<W> system(n, m.columns);
          pack_lanes(diagonals + first * 3 * n, count, 3 * n, system.diagonals);
          pack_lanes(rhs + first * size, count, size, system.x);
          refuse_lanes(system.solve(pivoting), count, first, host::tridiagonal_words(pivoting),
                       m.batch);
          unpack_lanes(system.x, count, size, to + first * size);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<W>);
}

template <class T>
KernelPtr prepare_matmul(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch m(p.output_shape(0));
  if (!is_short(m)) return host::tridiagonal_matmul(p);
  const double cost = cost_of(m);
  return make_kernel(
      [=](RunContext& c) {
        const T* const rhs = host::matrices<T>(c.input(3));
        T* const to = host::matrices<T>(c.output(0));
        const int64_t n = m.rows, size = m.elements();
        each_group<W>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneTridiagonal<W> matrix(n, m.columns);
          for (int i = 0; i < 3; ++i) {
            pack_lanes(host::matrices<T>(c.input(i)) + first * n, count, n,
                       matrix.diagonals + i * n);
          }
          pack_lanes(rhs + first * size, count, size, matrix.x);
          LaneNumber<W> product[kMostLaneRows * kMostLaneColumns];
          matrix.multiply(product);
          unpack_lanes(product, count, size, to + first * size);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<W>);
}

}  // namespace

void register_lane_tridiagonal_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("TridiagonalSolve", {{"T", {dtype}}}, prepare_solve<T>);
    r.add("TridiagonalMatMul", {{"T", {dtype}}}, prepare_matmul<T>);
  });
}

}  // namespace treenail::cpu
