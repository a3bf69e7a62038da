// SPDX-License-Identifier: Apache-2.0
// What the LAPACK adapter offers its user (kernels/host/linalg), and the form that Eigen's
// decompositions are given there: routines on one matrix on one thread, in column-major storage
// without gaps. Arguments are right when a routine is called, so that no library has anything to
// print.
#pragma once

#include <complex>
#include <cstdint>

#include "framework/base/adapter.h"

namespace treenail {

// Of n x n matrices: n is at most 2^31 - 1. A row-major matrix is read as its transpose; what
// follows from that is the callers' business.
template <class T>
struct DenseRoutines {
  // a = U^H U from the upper triangle of a, which becomes U; the rest of a is neither read nor
  // written. False: a is not positive definite, or holds NaN.
  bool (*cholesky)(int64_t n, T* a);
  // a = P L U by partial pivoting; rows i and pivots[i] >= i were exchanged, in this order.
  void (*lu)(int64_t n, T* a, int32_t* pivots);
  // b = b a^-1 or, adjoint, b a^-H for m x n matrices b; a is triangular, its other triangle is
  // not read, nor is the diagonal where it is all ones (unit).
  void (*solve_right)(bool upper, bool adjoint, bool unit, int64_t m, int64_t n, const T* a, T* b);
};

struct LapackApi {
  AdapterHeader header;
  DenseRoutines<float> single;
  DenseRoutines<double> real;
  DenseRoutines<std::complex<float>> complex_single;
  DenseRoutines<std::complex<double>> complex;
};

}  // namespace treenail
