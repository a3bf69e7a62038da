// SPDX-License-Identifier: Apache-2.0
// Square roots and logarithms of upper triangular matrices in column-major storage, real ones with
// positive eigenvalues or complex ones. What is below the diagonal is neither read nor written.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "kernels/adapters/lapack/lapack_api.h"
#include "kernels/host/linalg/matrix_norm.h"

namespace treenail::host {

// y -= factor x. Complex numbers in parts: the operator looks for NaN.
inline void subtract_multiple(int64_t count, double factor, const double* x, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}
inline void subtract_multiple(int64_t count, std::complex<double> factor,
                              const std::complex<double>* x, std::complex<double>* y) {
  const double re = factor.real(), im = factor.imag();
  for (int64_t i = 0; i < count; ++i) {
    const double a = x[i].real(), b = x[i].imag();
    y[i] = {y[i].real() - (re * a - im * b), y[i].imag() - (re * b + im * a)};
  }
}

// t becomes its square root. False: it has none, as a nilpotent block has none. Bjorck and
// Hammarling, A Schur method for the square root of a matrix, 1983.
template <class N>
bool sqrt_of_triangle(int64_t n, N* t) {
  for (int64_t i = 0; i < n; ++i) t[i * (n + 1)] = std::sqrt(t[i * (n + 1)]);
  for (int64_t k = 1; k < n; ++k) {
    N* const column = t + k * n;
    for (int64_t i = k - 1; i >= 0; --i) {
      const N sum = t[i * (n + 1)] + column[k];
      if (column[i] != N(0)) column[i] /= sum;
      if (!std::isfinite(std::abs(column[i]))) return false;
      subtract_multiple(i, column[i], t + i * n, column);
    }
  }
  return true;
}

// Nodes and weights of Gauss and Legendre on [0, 1].
struct Quadrature {
  static constexpr int kMost = 7;
  std::array<double, kMost> nodes, weights;
  explicit Quadrature(int m) {
    for (int i = 0; i < m; ++i) {
      double x = std::cos(std::numbers::pi * (i + 0.75) / (m + 0.5)), slope = 1;
      for (int round = 0; round < 8; ++round) {
        double p = x, before = 1;
        for (int j = 2; j <= m; ++j) {
          const double next = ((2 * j - 1) * x * p - (j - 1) * before) / j;
          before = p;
          p = next;
        }
        slope = m * (x * p - before) / (x * x - 1);
        x -= p / slope;
      }
      nodes[i] = (1 + x) / 2;
      weights[i] = 1 / ((1 - x * x) * slope * slope);
    }
  }
};

// Al-Mohy and Higham, Improved inverse scaling and squaring algorithms for the matrix logarithm,
// 2012: square roots of t until an approximant of low degree serves for r = t^(1/2^s), and then
// log t = 2^s log r. The diagonal and the one above it are computed by themselves, from t.
template <class N>
class LogOfTriangle {
 public:
  // Memory for n x n numbers each.
  struct Memory {
    N *root, *rest, *power, *other;
  };

  LogOfTriangle(const DenseRoutines<N>& table, int64_t n, const Memory& memory)
      : table_(table), n_(n), count_(n * n), m_(memory) {}

  // result = log t; below the diagonals of both are zeros. False: there is none, for t is singular
  // or out of range.
  bool compute(const N* t, N* result) {
    for (int64_t i = 0; i < n_; ++i) {
      if (t[i * (n_ + 1)] == N(0)) return false;
    }
    std::copy_n(t, count_, m_.root);
    for (double size = distance_of_values(); size > kMost[6]; size = distance_of_values()) {
      if (!take_root()) return false;
    }
    const int degree = choose_degree();
    if (degree == 0) return false;
    replace_diagonals(t);
    approximate(degree, result);
    for (int64_t i = 0; i < count_; ++i) result[i] *= std::ldexp(1.0, roots_);
    for (int64_t i = 0; i < n_; ++i) result[i * (n_ + 1)] = std::log(t[i * (n_ + 1)]);
    for (int64_t i = 0; i + 1 < n_; ++i) {
      const int64_t at = (i + 1) * (n_ + 1) - 1;
      result[at] = t[at] * log_difference(t[i * (n_ + 1)], t[(i + 1) * (n_ + 1)]);
    }
    return true;
  }

 private:
  // Norms of r - 1 up to which approximants of degrees 1, 2, ... serve (table 2.1).
  static constexpr double kMost[] = {1.59e-5, 2.31e-3, 1.94e-2, 6.21e-2, 1.28e-1, 2.06e-1, 2.88e-1};
  static constexpr int kMostRoots = 100;  // numbers are within 2^-1074 and 2^1024

  bool take_root() { return ++roots_ <= kMostRoots && sqrt_of_triangle(n_, m_.root); }

  // Of the eigenvalues of r from 1.
  double distance_of_values() const {
    double largest = 0;
    for (int64_t i = 0; i < n_; ++i) {
      largest = std::max(largest, std::abs(m_.root[i * (n_ + 1)] - N(1)));
    }
    return largest;
  }

  // Takes more roots where it needs to; leaves r - 1 in m_.rest. 0: norms are out of range.
  int choose_degree() {
    do {
      std::copy_n(m_.root, count_, m_.rest);
      for (int64_t i = 0; i < n_; ++i) m_.rest[i * (n_ + 1)] -= N(1);
      table_.multiply(n_, n_, n_, m_.rest, m_.rest, m_.power);
      const double second = std::pow(one_norm(n_, m_.power), 1.0 / 2);
      table_.multiply(n_, n_, n_, m_.rest, m_.power, m_.other);
      const double third = std::pow(one_norm(n_, m_.other), 1.0 / 3);
      table_.multiply(n_, n_, n_, m_.rest, m_.other, m_.power);
      const double fourth = std::pow(one_norm(n_, m_.power), 1.0 / 4);
      const double low = std::max(second, third);
      for (int i = 0; i < 7; ++i) {
        // Degrees from 3 on also by the later pair (theorem 2.4).
        const double size = i < 2 ? low : std::min(low, std::max(third, fourth));
        if (size <= kMost[i]) return i + 1;
      }
    } while (take_root());
    return 0;
  }

  // (log b - log a) / 2, exact where a and b are near one another. Of complex numbers atanh gives
  // it but for a multiple of pi i, by rounding alone where a and b are opposite.
  static N half_log_difference(N a, N b) {
    const N half = std::atanh((b - a) / (b + a));
    if constexpr (std::is_same_v<N, double>) {
      return half;
    } else {
      const double turn = (std::arg(b) - std::arg(a)) / 2;
      return half + N(0, std::numbers::pi * std::round((turn - half.imag()) / std::numbers::pi));
    }
  }
  static bool far_apart(N a, N b) {
    return std::abs(a) < std::abs(b) / 2 || std::abs(b) < std::abs(a) / 2;
  }
  // (log b - log a) / (b - a).
  static N log_difference(N a, N b) {
    if (a == b) return N(1) / a;
    if (far_apart(a, b) || a + b == N(0)) return (std::log(b) - std::log(a)) / (b - a);
    return 2.0 * half_log_difference(a, b) / (b - a);
  }
  // (b^p - a^p) / (b - a) (Higham and Lin, A Schur-Pade algorithm for fractional powers of a
  // matrix, 2011, 5.6).
  static N power_difference(N a, N b, double p) {
    if (a == b) return p * std::pow(a, p - 1);
    if (far_apart(a, b) || a + b == N(0)) return (std::pow(b, p) - std::pow(a, p)) / (b - a);
    const N middle = std::exp(p / 2 * (std::log(a) + std::log(b)));
    return middle * 2.0 * std::sinh(p * half_log_difference(a, b)) / (b - a);
  }

  // a^(1/2^roots_) - 1 without cancellation (Al-Mohy, A more accurate Briggs method for the
  // logarithm, 2012).
  N root_less_one(N a) const {
    if (roots_ == 0) return a - N(1);
    int more = roots_;
    if (std::real(a) <= 0) {
      a = std::sqrt(a);
      --more;
    }
    const N difference = a - N(1);
    if (more == 0) return difference;
    a = std::sqrt(a);
    N product = N(1) + a;
    for (int i = 1; i < more; ++i) {
      a = std::sqrt(a);
      product *= N(1) + a;
    }
    return difference / product;
  }

  // Of r - 1, which have lost digits on the way: from t.
  void replace_diagonals(const N* t) {
    if (roots_ == 0) return;
    const double p = std::ldexp(1.0, -roots_);
    for (int64_t i = 0; i < n_; ++i) m_.rest[i * (n_ + 1)] = root_less_one(t[i * (n_ + 1)]);
    for (int64_t i = 0; i + 1 < n_; ++i) {
      const int64_t at = (i + 1) * (n_ + 1) - 1;
      m_.rest[at] = t[at] * power_difference(t[i * (n_ + 1)], t[(i + 1) * (n_ + 1)], p);
    }
  }

  // The sum over the nodes of weight (1 + node x)^-1 x for x = r - 1: the approximant in partial
  // fractions.
  void approximate(int degree, N* sum) {
    const Quadrature rule(degree);
    std::fill(sum, sum + count_, N(0));
    for (int k = 0; k < degree; ++k) {
      for (int64_t i = 0; i < count_; ++i) m_.power[i] = rule.nodes[k] * m_.rest[i];
      for (int64_t i = 0; i < n_; ++i) m_.power[i * (n_ + 1)] += N(1);
      std::copy_n(m_.rest, count_, m_.other);
      table_.solve_right(true, false, false, n_, n_, m_.power, m_.other);
      for (int64_t i = 0; i < count_; ++i) sum[i] += rule.weights[k] * m_.other[i];
    }
  }

  const DenseRoutines<N>& table_;
  int64_t n_, count_;
  Memory m_;
  int roots_ = 0;
};

}  // namespace treenail::host
