// SPDX-License-Identifier: Apache-2.0
// Clebsch-Gordan coefficients of SO(3) in the basis of real spherical harmonics, m = -l ... l,
// which for l = 1 is (y, z, x). Racah's formula gives those of the complex basis (Edmonds, Angular
// Momentum in Quantum Mechanics, 3.6.11); the phase (-i)^l per index makes the rest real.
#pragma once

#include <cmath>
#include <complex>
#include <cstdlib>
#include <vector>

namespace so3 {

constexpr int kMostDegree = 20;  // beyond it the alternating sum loses digits

inline double factorial(int n) { return std::tgamma(n + 1.0); }

// <l1 m1 l2 m2 | l m>
inline double complex_coefficient(int l1, int m1, int l2, int m2, int l, int m) {
  if (m1 + m2 != m || l < std::abs(l1 - l2) || l > l1 + l2) return 0;
  double sum = 0;
  for (int k = 0; k <= l1 + l2 - l; ++k) {
    const int rest[] = {l1 + l2 - l - k, l1 - m1 - k, l2 + m2 - k, l - l2 + m1 + k,
                        l - l1 - m2 + k};
    double term = (k % 2 == 0 ? 1 : -1) / factorial(k);
    for (const int n : rest) term = n < 0 ? 0 : term / factorial(n);
    sum += term;
  }
  const double triangle = factorial(l1 + l2 - l) * factorial(l + l1 - l2) * factorial(l + l2 - l1) /
                          factorial(l1 + l2 + l + 1);
  const double powers = factorial(l1 + m1) * factorial(l1 - m1) * factorial(l2 + m2) *
                        factorial(l2 - m2) * factorial(l + m) * factorial(l - m);
  return sum * std::sqrt((2 * l + 1) * triangle) * std::sqrt(powers);
}

// How much of the complex harmonic m the real one `a` has.
inline std::complex<double> real_in_complex(int l, int m, int a) {
  if (std::abs(m) != std::abs(a)) return 0;
  const std::complex<double> i(0, 1), phases[] = {1, -i, -1, i};
  const double half = std::sqrt(0.5), sign = m > 0 && m % 2 != 0 ? -1 : 1;
  if (m == 0) return phases[l % 4];
  return phases[l % 4] * (a > 0 ? sign * half : (m > 0 ? sign : -1) * half * i);
}

struct Term {
  int a, b, c;  // positions, 0 ... 2l
  double coefficient;
};

// z[c] += coefficient * x[a] * y[b]: the part of degree l of x (degree l1) times y (degree l2).
// The squares of the coefficients add up to 2l + 1.
inline std::vector<Term> tensor_product_terms(int l1, int l2, int l) {
  std::vector<Term> terms;
  for (int a = -l1; a <= l1; ++a) {
    for (int b = -l2; b <= l2; ++b) {
      for (int c = -l; c <= l; ++c) {
        std::complex<double> sum = 0;
        for (const int m1 : {a, -a}) {
          for (const int m2 : {b, -b}) {
            const int m = m1 + m2;
            if (std::abs(m) != std::abs(c)) continue;
            const double repeats = (a == 0 ? 2 : 1) * (b == 0 ? 2 : 1);
            sum += real_in_complex(l1, m1, a) * real_in_complex(l2, m2, b) *
                   std::conj(real_in_complex(l, m, c)) * complex_coefficient(l1, m1, l2, m2, l, m) /
                   repeats;
          }
        }
        if (std::abs(sum) > 1e-12) terms.push_back({a + l1, b + l2, c + l, sum.real()});
      }
    }
  }
  return terms;
}

}  // namespace so3
