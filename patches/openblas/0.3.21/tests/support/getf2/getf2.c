/* SPDX-License-Identifier: Apache-2.0
   The file GETF2_C as LAPACK's function INTERFACE, one of sgetrf_, dgetrf_, cgetrf_, zgetrf_. */

#include GETF2_C

void INTERFACE(int* m, int* n, FLOAT* a, int* lda, int* pivots, int* info) {
  blas_arg_t args = {a, pivots, *m, *n, *lda};
  *info = CNAME(&args, NULL, NULL, NULL, NULL, 0);
}
