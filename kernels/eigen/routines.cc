// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/routines.h"

namespace treenail::eigen {
namespace {

using Z = std::complex<double>;

template <class T>
constexpr DenseRoutines<T> kRoutines = {cholesky<T>, lu<T>, solve_right<T>};

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
