// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/Eigenvalues>
#include <type_traits>

namespace treenail::eigen {

template <class T>
bool schur(int64_t n, T* a, T* u, void*) {
  using Solver = std::conditional_t<std::is_same_v<T, Real<T>>, Eigen::RealSchur<EigenMatrix<T>>,
                                    Eigen::ComplexSchur<EigenMatrix<T>>>;
  Eigen::Map<EigenMatrix<T>> matrix(a, n, n);
  Solver solver(n);
  solver.compute(matrix);
  if (solver.info() != Eigen::Success) return false;
  matrix = solver.matrixT();
  Eigen::Map<EigenMatrix<T>>(u, n, n) = solver.matrixU();
  return true;
}

template bool schur<double>(int64_t, double*, double*, void*);
template bool schur<std::complex<double>>(int64_t, std::complex<double>*, std::complex<double>*,
                                          void*);

}  // namespace treenail::eigen
