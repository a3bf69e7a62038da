// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/routines.h"

#include <algorithm>

namespace treenail::eigen {
namespace {

using Z = std::complex<double>;

// The solver's vectors and what its substeps need.
template <class T>
int64_t eigh_takes(int64_t n) {
  return 2 * n * n * static_cast<int64_t>(sizeof(T));
}
// The factors of QR and the vectors of a rectangle; five squares of the method.
template <class T>
int64_t svd_takes(int64_t m, int64_t n, Vectors vectors) {
  const int64_t shorter = std::min(m, n), longer = std::max(m, n);
  const int64_t of_vectors = vectors == Vectors::kFull ? longer * longer : longer * shorter;
  return (longer * shorter + of_vectors + 5 * shorter * shorter) * static_cast<int64_t>(sizeof(T));
}
// The triangle, the vectors, and the Hessenberg form before them.
template <class T>
int64_t schur_takes(int64_t n) {
  return 3 * n * n * static_cast<int64_t>(sizeof(T));
}

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
    eigh_takes<T>,
    svd_takes<T>,
    schur_takes<T>,
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
