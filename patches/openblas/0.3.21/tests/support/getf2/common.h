/* SPDX-License-Identifier: Apache-2.0
   What lapack/getf2 needs of OpenBLAS' common.h: plain loops in place of the kernels. COMPLEX and
   DOUBLE choose the type, as in OpenBLAS; a complex number is two FLOATs. */

#include <stddef.h>

typedef long BLASLONG;
typedef int blasint;

#ifdef DOUBLE
typedef double FLOAT;
#else
typedef float FLOAT;
#endif

typedef struct {
  void *a, *c;
  BLASLONG m, n, lda;
} blas_arg_t;

#define ZERO ((FLOAT)0)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) < (b) ? (b) : (a))

static inline FLOAT magnitude(FLOAT x) { return x < 0 ? -x : x; }

#ifdef COMPLEX
#define COMPSIZE 2

static inline BLASLONG IAMAX_K(BLASLONG n, FLOAT* x, BLASLONG step) {
  BLASLONG i, best = 0;
  for (i = 1; i < n; i++)
    if (magnitude(x[2 * i * step]) + magnitude(x[2 * i * step + 1]) >
        magnitude(x[2 * best * step]) + magnitude(x[2 * best * step + 1]))
      best = i;
  return best + 1;
}

/* y += (re + i im) * x, elementwise */
static inline void add(BLASLONG n, FLOAT re, FLOAT im, FLOAT* x, FLOAT* y) {
  BLASLONG i;
  for (i = 0; i < n; i++) {
    y[2 * i] += re * x[2 * i] - im * x[2 * i + 1];
    y[2 * i + 1] += re * x[2 * i + 1] + im * x[2 * i];
  }
}

#define GEMV_N(m, n, z, re, im, a, lda, x, sx, y, sy, buffer)                      \
  do {                                                                             \
    BLASLONG k_;                                                                   \
    for (k_ = 0; k_ < (n); k_++)                                                   \
      add(m, (re) * (x)[2 * k_], (re) * (x)[2 * k_ + 1], (a) + 2 * k_ * (lda), y); \
  } while (0)

/* Solves L x = b, L with ones on its diagonal. */
static inline void ZTRSV_NLU(BLASLONG n, FLOAT* a, BLASLONG lda, FLOAT* b, BLASLONG step,
                             FLOAT* buffer) {
  BLASLONG k;
  for (k = 0; k < n; k++)
    add(n - k - 1, -b[2 * k], -b[2 * k + 1], a + 2 * (k * lda + k + 1), b + 2 * (k + 1));
}

static inline void SCAL_K(BLASLONG n, BLASLONG z1, BLASLONG z2, FLOAT re, FLOAT im, FLOAT* x,
                          BLASLONG step, FLOAT* u1, BLASLONG u2, FLOAT* u3, BLASLONG u4) {
  BLASLONG i;
  for (i = 0; i < n; i++) {
    FLOAT old = x[2 * i];
    x[2 * i] = re * old - im * x[2 * i + 1];
    x[2 * i + 1] = re * x[2 * i + 1] + im * old;
  }
}

static inline void SWAP_K(BLASLONG n, BLASLONG z1, BLASLONG z2, FLOAT re, FLOAT im, FLOAT* x,
                          BLASLONG sx, FLOAT* y, BLASLONG sy, FLOAT* u1, BLASLONG u2) {
  BLASLONG i, part;
  for (i = 0; i < n; i++)
    for (part = 0; part < 2; part++) {
      FLOAT old = x[2 * i * sx + part];
      x[2 * i * sx + part] = y[2 * i * sy + part];
      y[2 * i * sy + part] = old;
    }
}
#else
#define COMPSIZE 1

static inline BLASLONG IAMAX_K(BLASLONG n, FLOAT* x, BLASLONG step) {
  BLASLONG i, best = 0;
  for (i = 1; i < n; i++)
    if (magnitude(x[i * step]) > magnitude(x[best * step])) best = i;
  return best + 1;
}

static inline FLOAT DOTU_K(BLASLONG n, FLOAT* x, BLASLONG sx, FLOAT* y, BLASLONG sy) {
  FLOAT sum = 0;
  BLASLONG i;
  for (i = 0; i < n; i++) sum += x[i * sx] * y[i * sy];
  return sum;
}

static inline void GEMV_N(BLASLONG m, BLASLONG n, BLASLONG z, FLOAT alpha, FLOAT* a, BLASLONG lda,
                          FLOAT* x, BLASLONG sx, FLOAT* y, BLASLONG sy, FLOAT* buffer) {
  BLASLONG i, k;
  for (k = 0; k < n; k++)
    for (i = 0; i < m; i++) y[i * sy] += alpha * x[k * sx] * a[k * lda + i];
}

static inline void SCAL_K(BLASLONG n, BLASLONG z1, BLASLONG z2, FLOAT alpha, FLOAT* x,
                          BLASLONG step, FLOAT* u1, BLASLONG u2, FLOAT* u3, BLASLONG u4) {
  BLASLONG i;
  for (i = 0; i < n; i++) x[i * step] *= alpha;
}

static inline void SWAP_K(BLASLONG n, BLASLONG z1, BLASLONG z2, FLOAT alpha, FLOAT* x, BLASLONG sx,
                          FLOAT* y, BLASLONG sy, FLOAT* u1, BLASLONG u2) {
  BLASLONG i;
  for (i = 0; i < n; i++) {
    FLOAT old = x[i * sx];
    x[i * sx] = y[i * sy];
    y[i * sy] = old;
  }
}
#endif
