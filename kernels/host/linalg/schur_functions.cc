// SPDX-License-Identifier: Apache-2.0
// Square roots and logarithms of matrices by their Schur form a = u t u^H: f(a) = u f(t) u^H. In
// double precision whatever the dtype. A matrix is computed with as it stands, though f(A^T) =
// f(A)^T: the Schur form then keeps the zeros below the blocks of a gradient's matrix
// (framework/ops/matrix_functions.cc), and a gradient of 0 goes on as 0. What has no such function,
// and of a real matrix no real one, is NaN: an error would take the rest of the batch with it.
#include <cstdlib>
#include <limits>
#include <numbers>

#include "kernels/eigen/complex_schur.h"
#include "kernels/eigen/scaling.h"
#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/triangles.h"
#include "kernels/host/linalg/triangular_functions.h"

namespace treenail::host {
namespace {

using Z = std::complex<double>;

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackSchur = 48;

enum class Function { kSquareRoot, kLogarithm };

// n x n matrices of numbers N, one after the other.
template <class N>
struct TriangleRoom {
  static constexpr int64_t kMatrices = 7;
  N *t, *u, *result;
  typename LogOfTriangle<N>::Memory more;
  static int64_t each(int64_t n) { return padded<N>(n * n); }
  static int64_t whole(int64_t n) { return kMatrices * each(n); }
  TriangleRoom(int64_t n, N* memory)
      : t(memory),
        u(t + each(n)),
        result(u + each(n)),
        more{result + each(n), result + 2 * each(n), result + 3 * each(n), result + 4 * each(n)} {}
};

template <class N>
void clear_below(int64_t n, N* t) {
  for (int64_t k = 0; k < n; ++k) std::fill(t + k * (n + 1) + 1, t + (k + 1) * n, N(0));
}

template <class N>
bool has_negative_value(int64_t n, const N* t) {
  for (int64_t i = 0; i < n; ++i) {
    const N value = t[i * (n + 1)];
    if (std::imag(value) == 0 && std::real(value) < 0) return true;
  }
  return false;
}

// room.result = f(room.t); `real`: of a real matrix, whose function is to be one.
template <class N>
bool function_of_triangle(Function f, const DenseRoutines<N>& table, int64_t n, bool real,
                          const TriangleRoom<N>& room) {
  clear_below(n, room.t);
  if (real && has_negative_value(n, room.t)) return false;
  if (f == Function::kLogarithm) {
    return LogOfTriangle<N>(table, n, room.more).compute(room.t, room.result);
  }
  std::copy_n(room.t, n * n, room.result);
  return sqrt_of_triangle(n, room.result);
}

// room.result = u result u^H.
template <class N>
void turn_back(const DenseRoutines<N>& table, int64_t n, const TriangleRoom<N>& room) {
  table.multiply(n, n, n, room.u, room.result, room.more.root);
  convert_transposed(room.u, n, n, n, room.more.rest);
  conjugate(room.more.rest, n * n);
  table.multiply(n, n, n, room.more.root, room.more.rest, room.result);
}

const DenseRoutines<Z>& complex_table(bool of_lapack) {
  return of_lapack ? lapack().api->complex : eigen::routines<Z>();
}

// What is computed of one matrix and where: the matrix, its u, memory of the routine, and then the
// triangle in numbers W, or in complex ones if a real matrix has complex eigenvalues.
template <class W>
class SchurFunction {
 public:
  SchurFunction(Function f, const Routines<W>& routines, int64_t n)
      : f_(f),
        routines_(routines),
        n_(n),
        each_(padded<W>(n * n)),
        work_(padded<W>(routines.table->schur_room(n) / static_cast<int64_t>(sizeof(W)) + 1)) {}

  MatrixMemory needs() const {
    constexpr auto kWide = static_cast<int64_t>(sizeof(Z) / sizeof(W));
    return {2 * each_ + work_ + kWide * TriangleRoom<Z>::whole(n_),
            routines_.table->schur_takes(n_)};
  }

  enum class Outcome { kDone, kNone, kNotConverged };
  // In place of the matrix at the beginning of the memory.
  Outcome compute(W* a) const {
    if (!all_finite(a, n_ * n_)) return Outcome::kNone;
    if (is_upper_triangle(n_, a)) return of_triangle(a);
    if (!is_lower_triangle(n_, a)) return scaled_by_schur_form(a);
    transpose_square(n_, a);
    const Outcome outcome = of_triangle(a);
    transpose_square(n_, a);
    return outcome;
  }

 private:
  static constexpr bool kReal = !is_complex_number<W>;
  W* rest(W* a) const { return a + 2 * each_ + work_; }

  // An even exponent to take off numbers whose squares might leave the range; 0 of ordinary ones,
  // for whose logarithms it would cost digits.
  int far_exponent(const W* a) const {
    constexpr int kOrdinary = 100;
    const int exponent = eigen::exponent_of(n_ * n_, a);
    return std::abs(exponent) > kOrdinary ? exponent / 2 * 2 : 0;
  }

  Outcome scaled_by_schur_form(W* a) const {
    const int exponent = far_exponent(a);
    eigen::scale(n_ * n_, -exponent, a);
    const Outcome outcome = by_schur_form(a);
    if (f_ == Function::kSquareRoot) {
      eigen::scale(n_ * n_, exponent / 2, a);
    } else if (exponent != 0) {
      for (int64_t i = 0; i < n_; ++i) a[i * (n_ + 1)] += exponent * std::numbers::ln2;
    }
    return outcome;
  }

  Outcome of_triangle(W* a) const {
    const TriangleRoom<W> room(n_, rest(a));
    std::copy_n(a, n_ * n_, room.t);
    if (!function_of_triangle(f_, *routines_.table, n_, kReal, room)) return Outcome::kNone;
    std::copy_n(room.result, n_ * n_, a);
    return Outcome::kDone;
  }

  Outcome by_schur_form(W* a) const {
    W* const u = a + each_;
    if (!routines_.table->schur(n_, a, u, u + each_)) return Outcome::kNotConverged;
    if constexpr (kReal) {
      if (eigen::has_pairs(n_, a)) return by_complex_form(a, u);
    }
    const TriangleRoom<W> room(n_, rest(a));
    std::copy_n(a, n_ * n_, room.t);
    std::copy_n(u, n_ * n_, room.u);
    if (!function_of_triangle(f_, *routines_.table, n_, kReal, room)) return Outcome::kNone;
    turn_back(*routines_.table, n_, room);
    std::copy_n(room.result, n_ * n_, a);
    return Outcome::kDone;
  }

  Outcome by_complex_form(W* a, const W* u) const {
    const TriangleRoom<Z> room(n_, reinterpret_cast<Z*>(rest(a)));
    const auto& table = complex_table(routines_.of_lapack);
    eigen::complex_schur(n_, a, u, room.t, room.u);
    if (!function_of_triangle(f_, table, n_, true, room)) return Outcome::kNone;
    turn_back(table, n_, room);
    for (int64_t i = 0; i < n_ * n_; ++i) a[i] = room.result[i].real();
    return Outcome::kDone;
  }

  Function f_;
  Routines<W> routines_;
  int64_t n_, each_, work_;
};

template <class W>
std::unique_ptr<Kernel> schur_kernel(Function f, const MatrixBatch& m,
                                     const Routines<W>& routines) {
  using Outcome = typename SchurFunction<W>::Outcome;
  const SchurFunction<W> function(f, routines, m.rows);
  const double cost = cubic_cost<W>(m.rows, f == Function::kLogarithm ? 80.0 : 40.0);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows;
        each_matrix(c, routines, m.count, cost, function.needs(), [&](int64_t i, W* a) {
          routines.load_transposed(c.input(0), i * n * n, n, n, a);
          const Outcome outcome = function.compute(a);
          if (outcome == Outcome::kNotConverged) {
            throw unsuitable_matrix(kNoSchurForm, m.batch, i);
          }
          if (outcome == Outcome::kNone) {
            std::fill(a, a + n * n, W(std::numeric_limits<double>::quiet_NaN()));
          }
          routines.store_transposed(a, n, n, n, c.output(0), i * n * n);
        });
      },
      cost * static_cast<double>(m.count));
}

std::unique_ptr<Kernel> prepare_function(Function f, const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  return with_wide_routines(p.input_type(0), m.rows, kLapackSchur,
                            [&](const auto& routines) { return schur_kernel(f, m, routines); });
}

template <class N>
bool log_of_small(int64_t n, const N* t, N* result) {
  N memory[4][kMostSmallRows * kMostSmallRows];
  LogOfTriangle<N> log(eigen::routines<N>(), n, {memory[0], memory[1], memory[2], memory[3]});
  return log.compute(t, result);
}

}  // namespace

std::unique_ptr<Kernel> dense_square_root(const PrepareContext& p) {
  return prepare_function(Function::kSquareRoot, p);
}
std::unique_ptr<Kernel> dense_logarithm(const PrepareContext& p) {
  return prepare_function(Function::kLogarithm, p);
}

bool log_of_triangle(int64_t n, const double* t, double* result) {
  return log_of_small(n, t, result);
}
bool log_of_triangle(int64_t n, const Z* t, Z* result) { return log_of_small(n, t, result); }

}  // namespace treenail::host
