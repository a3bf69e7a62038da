// SPDX-License-Identifier: Apache-2.0
// Decompositions where there is no LAPACK, and between the matrices that are small enough for
// kernels/cpu/linalg and those that are worth a call of it. Why Eigen, and why in double precision
// alone: docs/decisions/linear-algebra.md.
#pragma once

#include <complex>

#include "kernels/adapters/lapack/lapack_api.h"

namespace treenail::eigen {

// Routines may raise std::bad_alloc. Matrices must lie at multiples of 64 bytes: Eigen's sums
// depend on where a vector begins.
template <class T>
const DenseRoutines<T>& routines();
template <>
const DenseRoutines<double>& routines();
template <>
const DenseRoutines<std::complex<double>>& routines();

template <class T>
bool cholesky(int64_t n, T* a);
template <class T>
void lu(int64_t n, T* a, int32_t* pivots);
template <class T>
void solve_right(bool upper, bool adjoint, bool unit, int64_t m, int64_t n, const T* a, T* b);

template <class T>
void qr(int64_t m, int64_t n, int64_t columns, T* a, T* q, void* work);
template <class T>
bool eigh(int64_t n, bool vectors, T* a, Real<T>* values, void* work);
template <class T>
bool svd(int64_t m, int64_t n, Vectors vectors, T* a, Real<T>* s, T* u, T* vh, void* work);
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c);
template <class T>
bool schur(int64_t n, T* a, T* u, void* work);
template <class T>
bool eig(int64_t n, bool vectors, T* a, Complex<T>* values, Complex<T>* v, void* work);
int64_t eig_room(int64_t n);

}  // namespace treenail::eigen
