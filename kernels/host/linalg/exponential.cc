// SPDX-License-Identifier: Apache-2.0
// Exponentials of matrices by scaling and squaring with diagonal Pade approximants: Higham, The
// scaling and squaring method for the matrix exponential revisited, 2005; Al-Mohy and Higham, A new
// scaling and squaring algorithm for the matrix exponential, 2009, with norms of powers instead of
// estimates. In double precision whatever the dtype. A matrix is computed with as it stands, though
// exp(A^T) = exp(A)^T: elimination then keeps the zeros below the blocks of a gradient's matrix
// (framework/ops/matrix_functions.cc), and a gradient of 0 goes on as 0.
#include <cmath>
#include <limits>

#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/lu_factors.h"
#include "kernels/host/linalg/matrix_norm.h"
#include "kernels/host/linalg/pade.h"
#include "kernels/host/linalg/triangles.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackExponential = 32;

template <class W>
bool is_diagonal(int64_t n, const W* a) {
  for (int64_t i = 0; i < n * n; ++i) {
    if (i % (n + 1) != 0 && a[i] != W(0)) return false;
  }
  return true;
}

// Where one exponential is computed: n x n matrices one after the other, then vectors.
template <class W>
struct ExpRoom {
  static constexpr int64_t kMatrices = 8;
  int64_t n, each;
  explicit ExpRoom(int64_t order) : n(order), each(padded<W>(order * order)) {}
  int64_t whole() const { return kMatrices * each + pivot_room<W>(n) + 4 * padded<W>(n); }
};

template <class W>
class Exponential {
 public:
  Exponential(const DenseRoutines<W>& table, const ExpRoom<W>& room, W* memory)
      : table_(table), n_(room.n), count_(room.n * room.n), a_(memory) {
    for (int i = 0; i < 4; ++i) even_[i] = memory + (i + 1) * room.each;
    odd_ = memory + 5 * room.each;
    sum_ = memory + 6 * room.each;
    product_ = memory + 7 * room.each;
    pivots_ = reinterpret_cast<int32_t*>(memory + 8 * room.each);
    W* const vectors = memory + 8 * room.each + pivot_room<W>(n_);
    vectors_ = reinterpret_cast<double*>(vectors);
    diagonal_ = vectors + 2 * padded<W>(n_);
    above_ = vectors + 3 * padded<W>(n_);
  }

  // In place of the matrix at the beginning of the memory.
  void compute() {
    if (!all_finite(a_, count_)) {
      std::fill(a_, a_ + count_, W(std::numeric_limits<double>::quiet_NaN()));
    } else if (is_diagonal(n_, a_)) {
      for (int64_t i = 0; i < n_; ++i) a_[i * (n_ + 1)] = std::exp(a_[i * (n_ + 1)]);
    } else {
      const bool lower = is_lower_triangle(n_, a_);
      if (lower) transpose_square(n_, a_);
      triangle_ = is_upper_triangle(n_, a_);
      approximate_and_square();
      if (lower) transpose_square(n_, a_);
    }
  }

 private:
  void approximate_and_square() {
    if (!compute_powers()) {
      // Powers of a matrix of a norm below 1 stay in range; factors are powers of two.
      const int exponent =
          std::ilogb(largest_part(count_, a_)) + std::ilogb(static_cast<double>(n_));
      scale_ = exponent + 3;
      scale_by(a_, -scale_);
      compute_powers();
    }
    const int squarings = choose_degree();
    keep_diagonals();
    approximate();
    set_diagonals(0);
    for (int i = 1; i <= squarings; ++i) {
      table_.multiply(n_, n_, n_, a_, a_, product_);
      std::copy_n(product_, count_, a_);
      set_diagonals(i);
    }
  }

  // The diagonal of a triangle and the one above it.
  void keep_diagonals() {
    if (!triangle_) return;
    for (int64_t i = 0; i < n_; ++i) diagonal_[i] = a_[i * (n_ + 1)];
    for (int64_t i = 0; i + 1 < n_; ++i) above_[i] = a_[(i + 1) * (n_ + 1) - 1];
  }

  // Those of the exponential after so many squarings, from what was kept: repeated squaring loses
  // them where the triangle's norm asks for many (Al-Mohy and Higham, code fragment 2.1).
  void set_diagonals(int squarings) {
    if (!triangle_) return;
    const double factor = std::ldexp(1.0, squarings);
    for (int64_t i = 0; i < n_; ++i) a_[i * (n_ + 1)] = std::exp(factor * diagonal_[i]);
    for (int64_t i = 0; i + 1 < n_; ++i) {
      a_[(i + 1) * (n_ + 1) - 1] =
          exp_above(factor * diagonal_[i], factor * above_[i], factor * diagonal_[i + 1]);
    }
  }

  // The second, fourth and sixth. False: some are out of range.
  bool compute_powers() {
    for (int i = 0; i < 3; ++i) {
      table_.multiply(n_, n_, n_, i == 0 ? a_ : even_[0], i == 0 ? a_ : even_[i - 1], even_[i]);
      if (!std::isfinite(one_norm(n_, even_[i]))) return false;
    }
    powers_ = 3;
    return std::isfinite(one_norm(n_, a_));
  }

  // The root of order p of the norm of a^p.
  double root_norm(const W* power, int p) const {
    const double root = std::pow(one_norm(n_, power), 1.0 / p);
    return std::isnan(root) ? std::numeric_limits<double>::infinity() : root;
  }

  // Sets the degree and scales the powers for it; the result: how often to square. A matrix that
  // grows more than its powers do needs fewer squarings than its norm says.
  int choose_degree() {
    const double fourth = root_norm(even_[1], 4), sixth = root_norm(even_[2], 6);
    const double size = std::max(fourth, sixth);
    for (const Degree& degree : kDegrees) {
      if (degree.m == 13) break;
      if (std::ldexp(size, scale_) > degree.most) continue;
      if (additional_scaling(degree.m, 0) > 0) continue;
      degree_ = degree.m;
      rescale(0);
      return 0;
    }
    degree_ = 13;
    const double least = std::min(size, later_powers(sixth));
    const double exponent = least > 0 ? std::log2(least / kDegrees[4].most) + scale_ : 0;
    const int first = static_cast<int>(std::max(0.0, std::ceil(exponent)));
    const int squarings = first + additional_scaling(13, first);
    rescale(squarings);
    return squarings;
  }

  double later_powers(double sixth) {
    table_.multiply(n_, n_, n_, even_[1], even_[1], product_);
    const double eighth = root_norm(product_, 8);
    table_.multiply(n_, n_, n_, even_[1], even_[2], product_);
    const double tenth = root_norm(product_, 10);
    return std::min(std::max(sixth, eighth), std::max(eighth, tenth));
  }

  // How much smaller the matrix times 2^-squarings must be for the error of the approximant to
  // vanish in rounded arithmetic, too: by the norm of |a|^(2m + 1) (Al-Mohy and Higham, 5.1).
  int additional_scaling(int m, int squarings) {
    const double growth = growth_of_powers(n_, a_, 2 * m, product_, vectors_);
    const double excess = growth + std::log2(error_coefficient(m)) +
                          2.0 * m * (scale_ - squarings) + std::numeric_limits<double>::digits;
    if (!(excess > 0)) return 0;
    return static_cast<int>(std::ceil(std::min(excess, 1e5) / (2 * m)));
  }

  // a and its even powers, from those of the matrix times 2^-scale_, to times 2^-squarings.
  void rescale(int squarings) {
    const int by = scale_ - squarings;
    scale_by(a_, by);
    for (int i = 0; i < powers_; ++i) scale_by(even_[i], 2 * (i + 1) * by);
    if (degree_ != 9) return;
    table_.multiply(n_, n_, n_, even_[1], even_[1], even_[3]);
    ++powers_;
  }

  void scale_by(W* x, int exponent) const {
    if (exponent == 0) return;
    for (int64_t i = 0; i < count_; ++i) {
      if constexpr (is_complex_number<W>) {
        x[i] = {std::ldexp(x[i].real(), exponent), std::ldexp(x[i].imag(), exponent)};
      } else {
        x[i] = std::ldexp(x[i], exponent);
      }
    }
  }

  // to = the sum over k of b[first + 2 k] a^(2 k), from k = `low` on.
  void polynomial(const std::array<double, 14>& b, size_t first, int low, int high, W* to) const {
    std::fill(to, to + count_, W(0));
    for (int k = std::max(low, 1); k <= high; ++k)
      add(b[first + 2 * static_cast<size_t>(k)], k, to);
    if (low == 0) {
      for (int64_t i = 0; i < n_; ++i) to[i * (n_ + 1)] += b[first];
    }
  }
  void add(double factor, int k, W* to) const {
    const W* const power = even_[k - 1];
    for (int64_t i = 0; i < count_; ++i) to[i] += factor * power[i];
  }

  // Of degree 13: a^6 (b[first + 8] a^2 + b[first + 10] a^4 + b[first + 12] a^6) and the rest.
  void long_polynomial(const std::array<double, 14>& b, size_t first, W* scratch, W* to) const {
    polynomial(b, first + 6, 1, 3, scratch);
    table_.multiply(n_, n_, n_, even_[2], scratch, to);
    for (int k = 1; k <= 3; ++k) add(b[first + 2 * static_cast<size_t>(k)], k, to);
    for (int64_t i = 0; i < n_; ++i) to[i * (n_ + 1)] += b[first];
  }

  // a = (v - u)^-1 (v + u) for u = a (the odd coefficients), v = the even ones.
  void approximate() {
    const auto b = pade_coefficients(degree_);
    if (degree_ == 13) {
      long_polynomial(b, 1, product_, sum_);
      table_.multiply(n_, n_, n_, a_, sum_, odd_);
      long_polynomial(b, 0, product_, sum_);
    } else {
      polynomial(b, 1, 0, (degree_ - 1) / 2, sum_);
      table_.multiply(n_, n_, n_, a_, sum_, odd_);
      polynomial(b, 0, 0, (degree_ - 1) / 2, sum_);
    }
    for (int64_t i = 0; i < count_; ++i) {
      a_[i] = sum_[i] + odd_[i];
      sum_[i] -= odd_[i];
    }
    table_.lu(n_, sum_, pivots_);
    solve_by_factors(table_, false, n_, n_, sum_, pivots_, a_);
  }

  const DenseRoutines<W>& table_;
  int64_t n_, count_;
  W* a_;
  W* even_[4];  // a^2, a^4, ...
  W *odd_, *sum_, *product_;
  int32_t* pivots_;
  double* vectors_;
  W *diagonal_, *above_;
  bool triangle_ = false;
  int powers_ = 0;
  int degree_ = 0;
  int scale_ = 0;  // a and its powers are those of the given matrix times 2^-scale_
};

template <class W>
std::unique_ptr<Kernel> exponential_kernel(const MatrixBatch& m, const Routines<W>& routines) {
  const ExpRoom<W> room(m.rows);
  const double cost = cubic_cost<W>(m.rows, 12.0);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows;
        each_matrix(c, routines, m.count, cost, room.whole(), [&](int64_t i, W* a) {
          routines.load_transposed(c.input(0), i * n * n, n, n, a);
          Exponential<W>(*routines.table, room, a).compute();
          routines.store_transposed(a, n, n, n, c.output(0), i * n * n);
        });
      },
      cost * static_cast<double>(m.count));
}

}  // namespace

std::unique_ptr<Kernel> dense_exponential(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  return with_wide_routines(p.input_type(0), m.rows, kLapackExponential,
                            [&](const auto& routines) { return exponential_kernel(m, routines); });
}

}  // namespace treenail::host
