// SPDX-License-Identifier: Apache-2.0
// LAPACK's symbols, for it ships no header of its own, and the same names for each type, so that
// one definition calls them. Lengths of character arguments follow the others, as GCC and all
// Fortran compilers that it links with have it.
#pragma once

#include <complex>
#include <cstddef>

namespace treenail {

using C = std::complex<float>;
using Z = std::complex<double>;

}  // namespace treenail

extern "C" {
using treenail::C;
using treenail::Z;
#define TREENAIL_DECLARE(s, T)                                                                \
  void s##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t);    \
  void s##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);   \
  void s##trsm_(const char* side, const char* uplo, const char* trans, const char* diag,      \
                const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b, \
                const int* ldb, size_t, size_t, size_t, size_t);                              \
  void s##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,           \
                 const int* lwork, int* info)
TREENAIL_DECLARE(s, float);
TREENAIL_DECLARE(d, double);
TREENAIL_DECLARE(c, C);
TREENAIL_DECLARE(z, Z);
#undef TREENAIL_DECLARE

#define TREENAIL_DECLARE(s, T)                                                                    \
  void s##gemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, \
                const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,           \
                const T* beta, T* c, const int* ldc, size_t, size_t)
TREENAIL_DECLARE(s, float);
TREENAIL_DECLARE(d, double);
TREENAIL_DECLARE(c, C);
TREENAIL_DECLARE(z, Z);
#undef TREENAIL_DECLARE

#define TREENAIL_DECLARE(gqr, T)                                                            \
  void gqr##_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, \
              T* work, const int* lwork, int* info)
TREENAIL_DECLARE(sorgqr, float);
TREENAIL_DECLARE(dorgqr, double);
TREENAIL_DECLARE(cungqr, C);
TREENAIL_DECLARE(zungqr, Z);
#undef TREENAIL_DECLARE

#define TREENAIL_DECLARE(s, T)                                                                    \
  void s##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w,    \
                 T* work, const int* lwork, int* iwork, const int* liwork, int* info, size_t,     \
                 size_t);                                                                         \
  void s##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u,  \
                 const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* iwork,   \
                 int* info, size_t);                                                              \
  void s##gees_(const char* jobvs, const char* sort, int (*select)(const T*, const T*),           \
                const int* n, T* a, const int* lda, int* sdim, T* wr, T* wi, T* vs,               \
                const int* ldvs, T* work, const int* lwork, int* bwork, int* info, size_t,        \
                size_t);                                                                          \
  void s##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, T* wr,  \
                T* wi, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, \
                int* info, size_t, size_t)
TREENAIL_DECLARE(s, float);
TREENAIL_DECLARE(d, double);
#undef TREENAIL_DECLARE

#define TREENAIL_DECLARE(c, T, R)                                                                 \
  void c##heevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, R* w,    \
                 T* work, const int* lwork, R* rwork, const int* lrwork, int* iwork,              \
                 const int* liwork, int* info, size_t, size_t);                                   \
  void c##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, R* s, T* u,  \
                 const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, R* rwork,     \
                 int* iwork, int* info, size_t);                                                  \
  void c##gees_(const char* jobvs, const char* sort, int (*select)(const T*), const int* n, T* a, \
                const int* lda, int* sdim, T* w, T* vs, const int* ldvs, T* work,                 \
                const int* lwork, R* rwork, int* bwork, int* info, size_t, size_t);               \
  void c##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, T* w,   \
                T* vl, const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork,        \
                R* rwork, int* info, size_t, size_t)
TREENAIL_DECLARE(c, C, float);
TREENAIL_DECLARE(z, Z, double);
#undef TREENAIL_DECLARE
}

namespace treenail {

#define TREENAIL_CALLS(s, gqr, T)                                                             \
  inline void potrf(int n, T* a, int* info) { s##potrf_("U", &n, a, &n, info, 1); }           \
  inline void getrf(int n, T* a, int* pivots, int* info) {                                    \
    s##getrf_(&n, &n, a, &n, pivots, info);                                                   \
  }                                                                                           \
  inline void trsm(const char* uplo, const char* trans, const char* diag, int m, int n,       \
                   const T* a, T* b) {                                                        \
    const T one(1);                                                                           \
    s##trsm_("R", uplo, trans, diag, &m, &n, &one, a, &n, b, &m, 1, 1, 1, 1);                 \
  }                                                                                           \
  inline void geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int* info) {              \
    s##geqrf_(&m, &n, a, &m, tau, work, &lwork, info);                                        \
  }                                                                                           \
  inline void orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int* info) { \
    gqr##_(&m, &n, &k, a, &m, tau, work, &lwork, info);                                       \
  }                                                                                           \
  inline void gemm(int m, int n, int k, const T* a, const T* b, T* c) {                       \
    const T one(1), zero(0);                                                                  \
    s##gemm_("N", "N", &m, &n, &k, &one, a, &m, b, &k, &zero, c, &m, 1, 1);                   \
  }
TREENAIL_CALLS(s, sorgqr, float)
TREENAIL_CALLS(d, dorgqr, double)
TREENAIL_CALLS(c, cungqr, C)
TREENAIL_CALLS(z, zungqr, Z)
#undef TREENAIL_CALLS

// Those for real numbers take no `rwork`, and give eigenvalues as two vectors of n, which stand one
// after the other in `w`.
#define TREENAIL_CALLS(s, T)                                                                      \
  inline void heevd(const char* jobz, int n, T* a, T* w, T* work, int lwork, T*, int, int* iwork, \
                    int liwork, int* info) {                                                      \
    s##syevd_(jobz, "U", &n, a, &n, w, work, &lwork, iwork, &liwork, info, 1, 1);                 \
  }                                                                                               \
  inline void gesdd(const char* jobz, int m, int n, T* a, T* s, T* u, T* vt, int ldvt, T* work,   \
                    int lwork, T*, int* iwork, int* info) {                                       \
    s##gesdd_(jobz, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, iwork, info, 1);            \
  }                                                                                               \
  inline void gees(int n, T* a, T* w, T* vs, T* work, int lwork, T*, int* info) {                 \
    int sdim = 0;                                                                                 \
    s##gees_("V", "N", nullptr, &n, a, &n, &sdim, w, w + n, vs, &n, work, &lwork, nullptr, info,  \
             1, 1);                                                                               \
  }                                                                                               \
  inline void geev(const char* jobvr, int n, T* a, T* w, T* vr, T* work, int lwork, T*,           \
                   int* info) {                                                                   \
    s##geev_("N", jobvr, &n, a, &n, w, w + n, nullptr, &n, vr, &n, work, &lwork, info, 1, 1);     \
  }
TREENAIL_CALLS(s, float)
TREENAIL_CALLS(d, double)
#undef TREENAIL_CALLS

#define TREENAIL_CALLS(c, T, R)                                                                    \
  inline void heevd(const char* jobz, int n, T* a, R* w, T* work, int lwork, R* rwork, int lrwork, \
                    int* iwork, int liwork, int* info) {                                           \
    c##heevd_(jobz, "U", &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1);  \
  }                                                                                                \
  inline void gesdd(const char* jobz, int m, int n, T* a, R* s, T* u, T* vt, int ldvt, T* work,    \
                    int lwork, R* rwork, int* iwork, int* info) {                                  \
    c##gesdd_(jobz, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, rwork, iwork, info, 1);      \
  }                                                                                                \
  inline void gees(int n, T* a, T* w, T* vs, T* work, int lwork, R* rwork, int* info) {            \
    int sdim = 0;                                                                                  \
    c##gees_("V", "N", nullptr, &n, a, &n, &sdim, w, vs, &n, work, &lwork, rwork, nullptr, info,   \
             1, 1);                                                                                \
  }                                                                                                \
  inline void geev(const char* jobvr, int n, T* a, T* w, T* vr, T* work, int lwork, R* rwork,      \
                   int* info) {                                                                    \
    c##geev_("N", jobvr, &n, a, &n, w, nullptr, &n, vr, &n, work, &lwork, rwork, info, 1, 1);      \
  }
TREENAIL_CALLS(c, C, float)
TREENAIL_CALLS(z, Z, double)
#undef TREENAIL_CALLS

}  // namespace treenail
