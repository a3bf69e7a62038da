// SPDX-License-Identifier: Apache-2.0
// Least squares, by normal equations and Cholesky factors or by singular values. The adjoint of the
// solution is computed, for a row-major matrix, read as column-major, is its transpose.
#include <cstring>
#include <limits>

#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackLeastSquares = 20;

// matrix is m x n, rhs m x k; `fewest`: the smaller one of m and n. Parts of the memory in Ws.
template <class W>
struct LeastSquares {
  MatrixBatch batch;
  int64_t m, n, k, fewest;
  bool fast;
  Routines<W> routines;
  int64_t of_a, of_rhs, of_solution, of_square, of_inner, of_values, work = 0, takes = 0;

  LeastSquares(const MatrixBatch& matrix, int64_t columns, bool by_cholesky, const Routines<W>& r)
      : batch(matrix),
        m(matrix.rows),
        n(matrix.columns),
        k(columns),
        fewest(std::min(m, n)),
        fast(by_cholesky),
        routines(r),
        of_a(padded<W>(m * n)),
        of_rhs(padded<W>(m * k)),
        of_solution(padded<W>(n * k)),
        of_square(padded<W>(fewest * fewest)),
        of_inner(padded<W>(fewest * k)),
        of_values(padded<W>(fewest)) {
    if (fast) return;
    work = r.table->svd_room(m, n, Vectors::kThin) / static_cast<int64_t>(sizeof(W)) + 1;
    takes = r.table->svd_takes(m, n, Vectors::kThin);
  }

  W* rhs(W* a) const { return a + of_a; }
  W* solution(W* a) const { return rhs(a) + of_rhs; }
  W* inner(W* a) const { return solution(a) + of_solution; }
  W* rest(W* a) const { return inner(a) + of_inner; }
  int64_t room() const {
    const int64_t more = fast ? of_a + of_square : 2 * of_a + of_values + work;
    return of_a + of_rhs + of_solution + of_inner + more;
  }

  // A and B^H.
  void load(RunContext& c, int64_t i, W* a) const {
    routines.load_transposed(c.input(0), i * m * n, m, n, a);
    routines.load(c.input(1), i * m * k, m * k, rhs(a));
    conjugate(rhs(a), m * k);
  }
  void store(RunContext& c, int64_t i, W* a) const {
    conjugate(solution(a), n * k);
    routines.store(solution(a), n * k, c.output(0), i * n * k);
  }

  // X^H = B^H A (A^H A + l)^-1, or B^H (A A^H + l)^-1 A where A has more columns. False: the
  // Gram matrix is not positive definite.
  bool by_normal_equations(RunContext& c, int64_t i, double regularizer, W* a) const {
    const DenseRoutines<W>& t = *routines.table;
    W *const adjoint = rest(a), *const gram = adjoint + of_a;
    routines.load(c.input(0), i * m * n, m * n, adjoint);
    conjugate(adjoint, m * n);
    const bool tall = m >= n;
    t.multiply(fewest, fewest, std::max(m, n), tall ? adjoint : a, tall ? a : adjoint, gram);
    for (int64_t d = 0; d < fewest; ++d) gram[d * (fewest + 1)] += static_cast<W>(regularizer);
    W* const x = tall ? solution(a) : rhs(a);
    if (tall) t.multiply(k, n, m, rhs(a), a, x);
    if (!t.cholesky(fewest, gram)) return false;
    for (int64_t d = 0; d < fewest; ++d) {
      if (!(std::real(gram[d * (fewest + 1)]) > 0)) return false;
    }
    t.solve_right(true, false, false, k, fewest, gram, x);
    t.solve_right(true, true, false, k, fewest, gram, x);
    if (!tall) t.multiply(k, n, m, x, a, solution(a));
    return true;
  }

  // X^H = B^H u s^+ v^H. Singular values up to the cutoff of tn.linalg.pinv count as zero.
  bool by_singular_values(W* a) const {
    const DenseRoutines<W>& t = *routines.table;
    W *const u = rest(a), *const vh = u + of_a, *const numbers = vh + of_a;
    auto* const values = reinterpret_cast<Real<W>*>(numbers);
    if (!all_finite(a, m * n)) {
      std::fill_n(solution(a), n * k, W(std::numeric_limits<Real<W>>::quiet_NaN()));
      return true;
    }
    if (!t.svd(m, n, Vectors::kThin, a, values, u, vh, numbers + of_values)) return false;
    const auto epsilon = routines.narrow ? std::numeric_limits<float>::epsilon()
                                         : std::numeric_limits<Real<W>>::epsilon();
    const Real<W> cutoff = 10 * static_cast<Real<W>>(std::max(m, n)) * epsilon * values[0];
    t.multiply(k, fewest, m, rhs(a), u, inner(a));
    for (int64_t s = 0; s < fewest; ++s) {
      const Real<W> factor = values[s] > cutoff ? 1 / values[s] : 0;
      for (int64_t j = 0; j < k; ++j) inner(a)[s * k + j] *= factor;
    }
    t.multiply(k, n, fewest, inner(a), vh, solution(a));
    return true;
  }

  void run(RunContext& c, double cost) const {
    const double regularizer = fast ? l2_regularizer(c) : 0;
    each_matrix(c, routines, batch.count, cost, {room(), takes}, [&](int64_t i, W* a) {
      load(c, i, a);
      const bool done = fast ? by_normal_equations(c, i, regularizer, a) : by_singular_values(a);
      if (!done) {
        throw unsuitable_matrix(fast ? kRankDeficient : kNoSingularValues, batch.batch, i);
      }
      store(c, i, a);
    });
  }
};

}  // namespace

double l2_regularizer(const RunContext& c) {
  const double regularizer = c.input(2).data<double>()[0];
  if (regularizer >= 0) return regularizer;
  throw invalid_argument("l2_regularizer must be >= 0, got ", regularizer);
}

std::unique_ptr<Kernel> dense_least_squares(const PrepareContext& p) {
  const MatrixBatch matrix(p.input_shape(0));
  const int64_t k = MatrixBatch(p.input_shape(1)).columns;
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  if (p.input_shape(0).num_elements() == 0) {
    return make_kernel(
        [](RunContext& c) { std::memset(c.output(0).raw(), 0, c.output(0).bytes()); });
  }
  const bool fast = p.op().get_bool("fast");
  return with_routines(p.input_type(0), std::max(matrix.rows, matrix.columns), kLapackLeastSquares,
                       [&]<class W>(const Routines<W>& routines) {
                         const LeastSquares<W> problem(matrix, k, fast, routines);
                         const double cost = cubic_cost<W>(std::max(matrix.rows, matrix.columns),
                                                           fast ? 2.0 : 22.0);
                         return make_kernel([=](RunContext& c) { problem.run(c, cost); },
                                            cost * static_cast<double>(matrix.count));
                       });
}

}  // namespace treenail::host
