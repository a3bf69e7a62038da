// SPDX-License-Identifier: Apache-2.0
// Cholesky factors and triangular systems. Read as column-major, a matrix is its transpose: the
// upper factor of A^T is the transpose of A's lower one, and A X = B is X^T A^T = B^T. So nothing
// is ever transposed.
#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackCholesky = 17;
constexpr int64_t kLapackTriangular = 17;

template <class W>
bool positive_diagonal(const W* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!(std::real(a[i * (n + 1)]) > 0)) return false;
  }
  return true;
}

template <class W>
bool has_zero_on_diagonal(const W* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * (n + 1)] == W(0)) return true;
  }
  return false;
}

template <class W>
std::unique_ptr<Kernel> cholesky_kernel(const MatrixBatch& m, const Routines<W>& routines) {
  const double cost = cubic_cost<W>(m.rows, 1.0 / 6);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows;
        each_matrix(c, routines, m.count, cost, n * n, [&](int64_t i, W* a) {
          const int64_t first = i * n * n;
          for (int64_t r = 0; r < n; ++r) {
            routines.load(c.input(0), first + r * n, r + 1, a + r * n);
          }
          if (!routines.table->cholesky(n, a) || !positive_diagonal(a, n)) {
            throw unsuitable_matrix(kNotPositiveDefinite, m.batch, i);
          }
          for (int64_t r = 0; r < n; ++r) std::fill(a + r * n + r + 1, a + (r + 1) * n, W(0));
          routines.store(a, n * n, c.output(0), first);
        });
      },
      cost * static_cast<double>(m.count));
}

template <class W>
std::unique_ptr<Kernel> triangular_kernel(const MatrixBatch& m, int64_t k, bool lower, bool adjoint,
                                          const Routines<W>& routines) {
  const double columns = static_cast<double>(k) / static_cast<double>(m.rows);
  const double cost = cubic_cost<W>(m.rows, 0.5 * columns);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows, room = padded<W>(n * n);
        each_matrix(c, routines, m.count, cost, room + n * k, [&](int64_t i, W* a) {
          W* const x = a + room;
          routines.load(c.input(0), i * n * n, n * n, a);
          if (has_zero_on_diagonal(a, n)) {
            throw unsuitable_matrix(kMatrixNotInvertible, m.batch, i);
          }
          routines.load(c.input(1), i * n * k, n * k, x);
          routines.table->solve_right(lower, adjoint, false, k, n, a, x);
          routines.store(x, n * k, c.output(0), i * n * k);
        });
      },
      cost * static_cast<double>(m.count));
}

}  // namespace

std::unique_ptr<Kernel> dense_cholesky(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  return with_routines(p.input_type(0), m.rows, kLapackCholesky,
                       [&](const auto& routines) { return cholesky_kernel(m, routines); });
}

std::unique_ptr<Kernel> dense_triangular_solve(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0)), rhs(p.output_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  const bool lower = p.op().get_bool("lower"), adjoint = p.op().get_bool("adjoint");
  return with_routines(p.input_type(0), m.rows, kLapackTriangular, [&](const auto& routines) {
    return triangular_kernel(m, rhs.columns, lower, adjoint, routines);
  });
}

}  // namespace treenail::host
