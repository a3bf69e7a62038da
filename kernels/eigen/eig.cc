// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors by the Schur form and substitution: Eigen's solvers for them would
// be compiled on top of it, for as long again.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/eigen/complex_schur.h"
#include "kernels/eigen/routines.h"
#include "kernels/eigen/scaling.h"

namespace treenail::eigen {
namespace {

using Z = std::complex<double>;

double largest_element(int64_t n, const Z* t) {
  double largest = std::numeric_limits<double>::min();
  for (int64_t i = 0; i < n * n; ++i) largest = std::max(largest, std::abs(t[i]));
  return largest;
}

void subtract_multiple(int64_t count, Z factor, const Z* x, Z* y) {
  const double re = factor.real(), im = factor.imag();
  for (int64_t i = 0; i < count; ++i) {
    const double a = x[i].real(), b = x[i].imag();
    y[i] = {y[i].real() - (re * a - im * b), y[i].imag() - (re * b + im * a)};
  }
}

// Column k of x solves (t - t[k, k]) x = 0 for upper triangular t. Differences below `least` count
// as that: vectors of equal eigenvalues are then nearly the same, as of a defective matrix they
// are. What grows out of range on the way is scaled down.
void substitute(int64_t n, int64_t k, const Z* t, double least, Z* x) {
  constexpr double kLarge = 1e100;
  for (int64_t i = 0; i < n; ++i) x[i] = i < k ? -t[k * n + i] : Z(i == k ? 1 : 0);
  for (int64_t i = k - 1; i >= 0; --i) {
    Z difference = t[i * (n + 1)] - t[k * (n + 1)];
    if (std::abs(difference) < least) difference = least;
    const Z element = x[i] / difference;
    x[i] = element;
    subtract_multiple(i, element, t + i * n, x);
    if (std::abs(element) < kLarge) continue;
    for (int64_t j = 0; j <= k; ++j) x[j] /= kLarge;
  }
}

// All vectors to the length 1, so that their product with u stays in range.
void triangle_vectors(int64_t n, const Z* t, Z* x) {
  const double least = std::numeric_limits<double>::epsilon() * largest_element(n, t);
  for (int64_t k = 0; k < n; ++k) {
    Z* const column = x + k * n;
    substitute(n, k, t, least, column);
    double largest = 0;
    for (int64_t i = 0; i <= k; ++i) largest = std::max(largest, std::abs(column[i]));
    for (int64_t i = 0; i <= k; ++i) column[i] /= largest;
  }
}

// By the complex form of a real matrix: vectors of a pair conjugate like its values.
void make_pairs_conjugate(int64_t n, const Z* values, Z* v) {
  for (int64_t k = 0; k + 1 < n; ++k) {
    if (values[k].imag() == 0) continue;
    for (int64_t i = 0; i < n; ++i) v[(k + 1) * n + i] = std::conj(v[k * n + i]);
    ++k;
  }
}

// Where the Schur form of a real matrix and that of a complex one lie in the working memory.
constexpr int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct EigParts {
  int64_t of_real, of_complex;
  explicit EigParts(int64_t n)
      : of_real(padded(n * n * static_cast<int64_t>(sizeof(double)))),
        of_complex(padded(n * n * static_cast<int64_t>(sizeof(Z)))) {}
  Z* part(void* work, int64_t i) const {
    return reinterpret_cast<Z*>(static_cast<char*>(work) + of_real + i * of_complex);
  }
};

bool schur_form(int64_t n, double* a, Z* t, Z* u, void* work) {
  auto* const real_u = static_cast<double*>(work);
  if (!schur(n, a, real_u, nullptr)) return false;
  complex_schur(n, a, real_u, t, u);
  return true;
}
bool schur_form(int64_t n, Z* a, Z* t, Z* u, void*) {
  if (!schur(n, a, u, nullptr)) return false;
  std::copy_n(a, n * n, t);
  return true;
}

}  // namespace

int64_t eig_room(int64_t n) {
  const EigParts parts(n);
  return parts.of_real + 3 * parts.of_complex;
}

template <class T>
bool eig(int64_t n, bool vectors, T* a, Complex<T>* values, Complex<T>* v, void* work) {
  const EigParts parts(n);
  Z *const t = parts.part(work, 0), *const u = parts.part(work, 1), *const x = parts.part(work, 2);
  const int exponent = exponent_of(n * n, a);
  scale(n * n, -exponent, a);
  if (!schur_form(n, a, t, u, work)) return false;
  for (int64_t i = 0; i < n; ++i) values[i] = scaled(t[i * (n + 1)], exponent);
  if (!vectors) return true;
  triangle_vectors(n, t, x);
  multiply(n, n, n, u, x, v);
  if (std::is_same_v<T, double>) make_pairs_conjugate(n, values, v);
  return true;
}

template bool eig<double>(int64_t, bool, double*, Z*, Z*, void*);
template bool eig<Z>(int64_t, bool, Z*, Z*, Z*, void*);

}  // namespace treenail::eigen
