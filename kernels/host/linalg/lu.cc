// SPDX-License-Identifier: Apache-2.0
// What follows from LU factors: the factors themselves, solutions, inverses, determinants. But for
// the factors, which are those of A, nothing is transposed: read as column-major a matrix is its
// transpose, and A X = B is X^T A^T = B^T.
#include <utility>

#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/determinant.h"
#include "kernels/host/linalg/lu_factors.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackLu = 40;

// Solves for the right sides in input 1, or for the identity.
template <class W>
std::unique_ptr<Kernel> solving_kernel(const MatrixBatch& m, int64_t k, bool identity, bool adjoint,
                                       const Routines<W>& routines) {
  const double columns = static_cast<double>(k) / static_cast<double>(m.rows);
  const double cost = cubic_cost<W>(m.rows, 1.0 / 3 + columns);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows, room = padded<W>(n * n), sides = padded<W>(n * k);
        each_matrix(c, routines, m.count, cost, room + sides + pivot_room<W>(n),
                    [&](int64_t i, W* a) {
                      W* const x = a + room;
                      auto* const pivots = reinterpret_cast<int32_t*>(x + sides);
                      routines.load(c.input(0), i * n * n, n * n, a);
                      routines.table->lu(n, a, pivots);
                      if (has_zero_pivot(a, n)) {
                        throw unsuitable_matrix(
                            identity ? kInputNotInvertible : kMatrixNotInvertible, m.batch, i);
                      }
                      if (identity) {
                        std::fill(x, x + n * n, W(0));
                        for (int64_t d = 0; d < n; ++d) x[d * (n + 1)] = W(1);
                      } else {
                        routines.load(c.input(1), i * n * k, n * k, x);
                      }
                      solve_by_factors(*routines.table, adjoint, n, k, a, pivots, x);
                      routines.store(x, n * k, c.output(0), i * n * k);
                    });
      },
      cost * static_cast<double>(m.count));
}

template <class Index>
void store_order(const int32_t* pivots, int64_t n, Index* order) {
  for (int64_t i = 0; i < n; ++i) order[i] = static_cast<Index>(i);
  for (int64_t i = 0; i < n; ++i) std::swap(order[i], order[pivots[i]]);
}

template <class W>
std::unique_ptr<Kernel> lu_kernel(const MatrixBatch& m, bool narrow_index,
                                  const Routines<W>& routines) {
  const double cost = cubic_cost<W>(m.rows, 1.0 / 3);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows, room = padded<W>(n * n);
        each_matrix(c, routines, m.count, cost, room + pivot_room<W>(n), [&](int64_t i, W* a) {
          auto* const pivots = reinterpret_cast<int32_t*>(a + room);
          routines.load_transposed(c.input(0), i * n * n, n, n, a);
          routines.table->lu(n, a, pivots);
          if (has_zero_pivot(a, n)) throw unsuitable_matrix(kInputNotInvertible, m.batch, i);
          routines.store_transposed(a, n, n, n, c.output(0), i * n * n);
          if (narrow_index) {
            store_order(pivots, n, matrices<int32_t>(c.output(1)) + i * n);
          } else {
            store_order(pivots, n, matrices<int64_t>(c.output(1)) + i * n);
          }
        });
      },
      cost * static_cast<double>(m.count));
}

template <class W>
ScaledProduct<WideNumber<W>> product_of_pivots(const W* a, const int32_t* pivots, int64_t n) {
  ScaledProduct<WideNumber<W>> product;
  for (int64_t i = 0; i < n; ++i) {
    product.multiply(static_cast<WideNumber<W>>(a[i * (n + 1)]));
    if (pivots[i] != i) product.negate();
  }
  return product;
}

template <class W>
std::unique_ptr<Kernel> determinant_kernel(const MatrixBatch& m, bool logarithm,
                                           const Routines<W>& routines) {
  const double cost = cubic_cost<W>(m.rows, 1.0 / 3);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows, room = padded<W>(n * n);
        each_matrix(c, routines, m.count, cost, room + pivot_room<W>(n), [&](int64_t i, W* a) {
          auto* const pivots = reinterpret_cast<int32_t*>(a + room);
          routines.load(c.input(0), i * n * n, n * n, a);
          if (n > 0) routines.table->lu(n, a, pivots);
          const auto product = product_of_pivots(a, pivots, n);
          const W first = static_cast<W>(logarithm ? product.sign() : product.value());
          routines.store(&first, 1, c.output(0), i);
          if (!logarithm) return;
          const W second = static_cast<W>(product.log_abs());
          routines.store(&second, 1, c.output(1), i);
        });
      },
      cost * static_cast<double>(m.count));
}

template <bool kLogarithm>
std::unique_ptr<Kernel> prepare_determinant(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  return with_routines(p.input_type(0), m.rows, kLapackLu, [&](const auto& routines) {
    return determinant_kernel(m, kLogarithm, routines);
  });
}

}  // namespace

std::unique_ptr<Kernel> dense_lu(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  return with_routines(p.input_type(0), m.rows, kLapackLu, [&](const auto& routines) {
    return lu_kernel(m, p.output_type(1) == DType::kInt32, routines);
  });
}

std::unique_ptr<Kernel> dense_solve(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0)), solution(p.output_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  const bool identity = p.num_inputs() == 1, adjoint = p.op().get_bool("adjoint");
  return with_routines(p.input_type(0), m.rows, kLapackLu, [&](const auto& routines) {
    return solving_kernel(m, solution.columns, identity, adjoint, routines);
  });
}

std::unique_ptr<Kernel> dense_determinant(const PrepareContext& p) {
  return prepare_determinant<false>(p);
}

std::unique_ptr<Kernel> dense_log_determinant(const PrepareContext& p) {
  return prepare_determinant<true>(p);
}

}  // namespace treenail::host
