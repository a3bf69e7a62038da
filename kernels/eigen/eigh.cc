// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/Eigenvalues>

namespace treenail::eigen {

// The solver reads the lower triangle, which is the adjoint of the upper one.
template <class T>
bool eigh(int64_t n, bool vectors, T* a, Real<T>* values, void*) {
  Eigen::Map<EigenMatrix<T>> matrix(a, n, n);
  matrix.template triangularView<Eigen::StrictlyLower>() = matrix.adjoint();
  Eigen::SelfAdjointEigenSolver<EigenMatrix<T>> solver(n);
  solver.compute(matrix, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::Matrix<Real<T>, Eigen::Dynamic, 1>>(values, n) = solver.eigenvalues();
  if (vectors) matrix = solver.eigenvectors();
  return true;
}

template bool eigh<double>(int64_t, bool, double*, double*, void*);
template bool eigh<std::complex<double>>(int64_t, bool, std::complex<double>*, double*, void*);

}  // namespace treenail::eigen
