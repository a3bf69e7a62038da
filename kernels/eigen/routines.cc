// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/routines.h"

namespace treenail::eigen {
namespace {

using Z = std::complex<double>;

// Eigen takes its own memory, but for what is of our own.
template <class T>
constexpr DenseRoutines<T> kRoutines = {
    cholesky<T>,
    lu<T>,
    solve_right<T>,
    qr<T>,
    [](int64_t, int64_t, int64_t) -> int64_t { return 0; },
    eigh<T>,
    [](int64_t, bool) -> int64_t { return 0; },
    svd<T>,
    [](int64_t, int64_t, Vectors) -> int64_t { return 0; },
    multiply<T>,
    schur<T>,
    [](int64_t) -> int64_t { return 0; },
    eig<T>,
    [](int64_t n, bool) -> int64_t { return eig_room(n); },
};

}  // namespace

template <>
const DenseRoutines<double>& routines() {
  return kRoutines<double>;
}
template <>
const DenseRoutines<Z>& routines() {
  return kRoutines<Z>;
}

}  // namespace treenail::eigen
