// SPDX-License-Identifier: Apache-2.0
// Schur forms. Compiled in a file for real and one for complex matrices, for Eigen has them apart,
// and both at once would take more than 10 s.
#pragma once

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

}  // namespace treenail::eigen
