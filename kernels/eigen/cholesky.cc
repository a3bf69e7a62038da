// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/Cholesky>

namespace treenail::eigen {

template <class T>
bool cholesky(int64_t n, T* a) {
  Eigen::Map<EigenMatrix<T>> map(a, n, n);
  Eigen::Ref<EigenMatrix<T>> matrix(map);
  return Eigen::LLT<Eigen::Ref<EigenMatrix<T>>, Eigen::Upper>(matrix).info() == Eigen::Success;
}

template bool cholesky<double>(int64_t, double*);
template bool cholesky<std::complex<double>>(int64_t, std::complex<double>*);

}  // namespace treenail::eigen
