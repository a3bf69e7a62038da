// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/eigen.h"
#include "kernels/eigen/routines.h"

namespace treenail::eigen {

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  using Constant = Eigen::Map<const EigenMatrix<T>>;
  Eigen::Map<EigenMatrix<T>>(c, m, n).noalias() = Constant(a, m, k) * Constant(b, k, n);
}

template void multiply<double>(int64_t, int64_t, int64_t, const double*, const double*, double*);
template void multiply<std::complex<double>>(int64_t, int64_t, int64_t, const std::complex<double>*,
                                             const std::complex<double>*, std::complex<double>*);

}  // namespace treenail::eigen
