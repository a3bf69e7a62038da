// SPDX-License-Identifier: Apache-2.0
// What the BLAS adapter offers its user (kernels/cpu/products/blas.cc): products in row-major
// storage, each on one thread. Between begin() and the matching end() the library's own thread
// count is one; the last end() restores what the first begin() found, so that NumPy, which shares
// the library and its one global count, finds its setting unchanged. OpenMP's count belongs to a
// thread and is saved and restored around each call.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

enum BlasTransform : int32_t { kBlasPlain = 0, kBlasTranspose = 1, kBlasAdjoint = 2 };

// C[m,n] = alpha op(A) op(B) + beta C; lda, ldb, ldc: elements between rows as stored.
template <class T, class Scalar>
using BlasProduct = void (*)(int32_t trans_a, int32_t trans_b, int32_t m, int32_t n, int32_t k,
                             Scalar alpha, const T* a, int32_t lda, const T* b, int32_t ldb,
                             Scalar beta, T* c, int32_t ldc);

struct BlasApi {
  AdapterHeader header;
  // "OpenBLAS", "BLIS", "FlexiBLAS (NETLIB)", ...; "BLAS" when the library does not say.
  const char* (*name)(void);
  // 1 when the library is known to be tuned for this CPU. A reference BLAS is slower than our own
  // product.
  int32_t (*tuned)(void);
  // 1 when calls from several threads at once are right (a serial OpenBLAS is not).
  int32_t (*concurrent)(void);
  void (*begin)(void);
  void (*end)(void);
  // The library's global thread count as it stands, 0 when it has none that can be asked: for
  // tests.
  int32_t (*threads)(void);
  BlasProduct<float, float> sgemm;
  BlasProduct<double, double> dgemm;
  BlasProduct<void, const void*> cgemm;
  BlasProduct<void, const void*> zgemm;
};

}  // namespace treenail
