// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

#include <Eigen/LU>
#include <algorithm>

namespace treenail::eigen {

template <class T>
void lu(int64_t n, T* a, int32_t* pivots) {
  Eigen::Map<EigenMatrix<T>> matrix(a, n, n);
  Eigen::Transpositions<Eigen::Dynamic, Eigen::Dynamic, int32_t> exchanges(n);
  int32_t count = 0;
  Eigen::internal::partial_lu_inplace(matrix, exchanges, count);
  std::copy_n(exchanges.indices().data(), n, pivots);
}

template void lu<double>(int64_t, double*, int32_t*);
template void lu<std::complex<double>>(int64_t, std::complex<double>*, int32_t*);

}  // namespace treenail::eigen
