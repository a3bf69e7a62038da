/* SPDX-License-Identifier: Apache-2.0
   What driver/others/dynamic.c needs of OpenBLAS' common.h, with a CPUID that says what the
   environment says: FAKE_FAMILY, FAKE_EXMODEL, FAKE_MODEL (numbers) and FAKE_FEATURES, one of avx,
   avx2, avx512, avx512_bf16 or nothing; each of them implies those before it. */

#ifndef FAKE_COMMON_H
#define FAKE_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
  void (*init)(void);
} gotoblas_t;

extern gotoblas_t* gotoblas;

void fake_cpuid(int leaf, int subleaf, int* eax, int* ebx, int* ecx, int* edx);

static inline void cpuid(int op, int* eax, int* ebx, int* ecx, int* edx) {
  fake_cpuid(op, 0, eax, ebx, ecx, edx);
}

static inline void cpuid_count(int op, int count, int* eax, int* ebx, int* ecx, int* edx) {
  fake_cpuid(op, count, eax, ebx, ecx, edx);
}

/* xgetbv is the only assembler there: the system saves all registers. */
#define __asm__
#define __volatile__(...) (*eax = 0xe7, *edx = 0, (void)op)

#endif
