// SPDX-License-Identifier: Apache-2.0
// A rectangular matrix becomes a square one by QR; then Jacobi's method, which is the slowest and
// the most exact one, and compiles in a tenth of the time of divide and conquer.
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/QR>
#include <Eigen/SVD>

namespace treenail::eigen {
namespace {

// a = u diag(s) v^H for matrices with at least as many rows as columns; u and v are set as
// `vectors` says.
template <class T, class Values>
void decompose(const EigenMatrix<T>& a, Vectors vectors, Values& s, EigenMatrix<T>& u,
               EigenMatrix<T>& v) {
  using Square = Eigen::JacobiSVD<EigenMatrix<T>, Eigen::NoQRPreconditioner>;
  const Eigen::Index m = a.rows(), n = a.cols();
  const Eigen::HouseholderQR<EigenMatrix<T>> factors(a);
  const EigenMatrix<T> r = factors.matrixQR().topRows(n).template triangularView<Eigen::Upper>();
  const bool wanted = vectors != Vectors::kNone;
  const Square square(r, wanted ? Eigen::ComputeFullU | Eigen::ComputeFullV : 0);
  s = square.singularValues();
  if (!wanted) return;
  u.setIdentity(m, vectors == Vectors::kFull ? m : n);
  u.topLeftCorner(n, n) = square.matrixU();
  u.applyOnTheLeft(factors.householderQ());
  v = square.matrixV();
}

}  // namespace

template <class T>
bool svd(int64_t m, int64_t n, Vectors vectors, T* a, Real<T>* s, T* u, T* vh, void*) {
  const Eigen::Map<EigenMatrix<T>> matrix(a, m, n);
  const bool wide = m < n;
  Eigen::Map<Eigen::Matrix<Real<T>, Eigen::Dynamic, 1>> values(s, std::min(m, n));
  EigenMatrix<T> left, right;
  if (wide) {
    decompose<T>(matrix.adjoint(), vectors, values, right, left);
  } else {
    decompose<T>(matrix, vectors, values, left, right);
  }
  if (vectors == Vectors::kNone) return true;
  Eigen::Map<EigenMatrix<T>>(u, m, left.cols()) = left;
  Eigen::Map<EigenMatrix<T>>(vh, right.cols(), n) = right.adjoint();
  return true;
}

template bool svd<double>(int64_t, int64_t, Vectors, double*, double*, double*, double*, void*);
template bool svd<std::complex<double>>(int64_t, int64_t, Vectors, std::complex<double>*, double*,
                                        std::complex<double>*, std::complex<double>*, void*);

}  // namespace treenail::eigen
