// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/QR>

namespace treenail::eigen {

template <class T>
void qr(int64_t m, int64_t n, int64_t columns, T* a, T* q, void*) {
  Eigen::Map<EigenMatrix<T>> map(a, m, n);
  Eigen::Ref<EigenMatrix<T>> matrix(map);
  const Eigen::HouseholderQR<Eigen::Ref<EigenMatrix<T>>> factors(matrix);
  Eigen::Map<EigenMatrix<T>> first(q, m, columns);
  first.setIdentity();
  first.applyOnTheLeft(factors.householderQ());
}

template void qr<double>(int64_t, int64_t, int64_t, double*, double*, void*);
template void qr<std::complex<double>>(int64_t, int64_t, int64_t, std::complex<double>*,
                                       std::complex<double>*, void*);

}  // namespace treenail::eigen
