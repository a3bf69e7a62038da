// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

namespace treenail::eigen {
namespace {

template <unsigned kTriangle, class T>
void solve(bool adjoint, int64_t m, int64_t n, const T* a, T* b) {
  const Eigen::Map<const EigenMatrix<T>> matrix(a, n, n);
  Eigen::Map<EigenMatrix<T>> sides(b, m, n);
  const auto triangle = matrix.template triangularView<kTriangle>();
  if (adjoint) {
    triangle.adjoint().template solveInPlace<Eigen::OnTheRight>(sides);
  } else {
    triangle.template solveInPlace<Eigen::OnTheRight>(sides);
  }
}

}  // namespace

template <class T>
void solve_right(bool upper, bool adjoint, bool unit, int64_t m, int64_t n, const T* a, T* b) {
  if (upper && unit) {
    solve<Eigen::UnitUpper>(adjoint, m, n, a, b);
  } else if (upper) {
    solve<Eigen::Upper>(adjoint, m, n, a, b);
  } else if (unit) {
    solve<Eigen::UnitLower>(adjoint, m, n, a, b);
  } else {
    solve<Eigen::Lower>(adjoint, m, n, a, b);
  }
}

template void solve_right<double>(bool, bool, bool, int64_t, int64_t, const double*, double*);
template void solve_right<std::complex<double>>(bool, bool, bool, int64_t, int64_t,
                                                const std::complex<double>*, std::complex<double>*);

}  // namespace treenail::eigen
