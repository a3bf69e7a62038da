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

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealPart<T>::type;
template <class T>
using Complex = std::complex<Real<T>>;

// Which singular vectors: none, as many as there are singular values, or all.
enum class Vectors : int32_t { kNone, kThin, kFull };

// Extents are at most 2^31 - 1. A row-major matrix is read as its transpose; what follows from that
// is the callers' business. `work` is memory of as many bytes as the routine's *_room says, at a
// multiple of 64 bytes.
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
  // a = Q R for m x n matrices a, in whose upper triangle R is left; q gets the first `columns` of
  // Q, at least as many as a has rows or columns.
  void (*qr)(int64_t m, int64_t n, int64_t columns, T* a, T* q, void* work);
  int64_t (*qr_room)(int64_t m, int64_t n, int64_t columns);
  // Eigenvalues of a Hermitian matrix, ascending, from the upper triangle of a, which is lost; with
  // vectors, a's columns become the eigenvectors. False: it did not converge.
  bool (*eigh)(int64_t n, bool vectors, T* a, Real<T>* values, void* work);
  int64_t (*eigh_room)(int64_t n, bool vectors);
  // a = u diag(s) vh for m x n matrices a, which is lost; s descends. u is m x k and vh k x n
  // (thin), or they are m x m and n x n. False: it did not converge.
  bool (*svd)(int64_t m, int64_t n, Vectors vectors, T* a, Real<T>* s, T* u, T* vh, void* work);
  int64_t (*svd_room)(int64_t m, int64_t n, Vectors vectors);
  // c = a b for m x k matrices a and k x n matrices b; c is apart from both.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c);
  // a = u t u^H with unitary u: a becomes t, upper triangular, of real matrices with blocks of 2 x
  // 2 on the diagonal for pairs of complex eigenvalues. False: it did not converge.
  bool (*schur)(int64_t n, T* a, T* u, void* work);
  int64_t (*schur_room)(int64_t n);
  // Eigenvalues of any square matrix, which is lost, and, with vectors, its eigenvectors in the
  // columns of v, of any length and phase. False: it did not converge.
  bool (*eig)(int64_t n, bool vectors, T* a, Complex<T>* values, Complex<T>* v, void* work);
  int64_t (*eig_room)(int64_t n, bool vectors);
  // Bytes that these take by themselves, besides what they are given.
  int64_t (*eigh_takes)(int64_t n);
  int64_t (*svd_takes)(int64_t m, int64_t n, Vectors vectors);
  int64_t (*schur_takes)(int64_t n);  // eig as well
};

// A call that LAPACK has not accepted, a mistake of ours or of the library.
struct LapackRefusal {
  const char* routine = nullptr;  // null: there was none
  int32_t argument = 0;           // counted from 1
};

struct LapackApi {
  AdapterHeader header;
  DenseRoutines<float> single;
  DenseRoutines<double> real;
  DenseRoutines<std::complex<float>> complex_single;
  DenseRoutines<std::complex<double>> complex;
  // Of this thread's calls since it was asked last: their results, whatever they are, do not count.
  LapackRefusal (*take_refusal)();
};

}  // namespace treenail
