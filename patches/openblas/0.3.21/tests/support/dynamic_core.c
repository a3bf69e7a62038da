/* SPDX-License-Identifier: Apache-2.0
   Prints the name of the kernels that the file DYNAMIC_C chooses on a made-up CPU. */

#include DYNAMIC_C

gotoblas_t* gotoblas = NULL;

static void init(void) {}

#define KERNELS(name) gotoblas_t gotoblas_##name = {init};
KERNELS(PRESCOTT)
KERNELS(CORE2)
KERNELS(NEHALEM)
KERNELS(BARCELONA)
KERNELS(SANDYBRIDGE)
KERNELS(BULLDOZER)
KERNELS(PILEDRIVER)
KERNELS(STEAMROLLER)
KERNELS(EXCAVATOR)
KERNELS(HASWELL)
KERNELS(ZEN)
KERNELS(SKYLAKEX)
KERNELS(COOPERLAKE)

void openblas_warning(int verbose, const char* message) {
  if (verbose <= 1) fputs(message, stderr);
}

static int number(const char* name) {
  const char* text = getenv(name);
  return text ? (int)strtol(text, NULL, 0) : 0;
}

void fake_cpuid(int leaf, int subleaf, int* eax, int* ebx, int* ecx, int* edx) {
  static const char* const names[] = {"avx", "avx2", "avx512", "avx512_bf16"};
  const char* text = getenv("FAKE_FEATURES");
  int level = 0, at;
  for (at = 0; text && at < 4; at++)
    if (!strcmp(text, names[at])) level = at + 1;
  *eax = *ebx = *ecx = *edx = 0;
  if (leaf == 0) {
    memcpy(ebx, "Genu", 4);
    memcpy(edx, "ineI", 4);
    memcpy(ecx, "ntel", 4);
  } else if (leaf == 1) {
    *eax = number("FAKE_EXMODEL") << 16 | number("FAKE_FAMILY") << 8 | number("FAKE_MODEL") << 4;
    *ecx = level >= 1 ? 7 << 26 : 0;
  } else if (leaf == 7 && subleaf == 0) {
    *ebx = (level >= 2 ? 1 << 5 : 0) | (level >= 3 ? (int)(1u << 31) : 0);
  } else if (leaf == 7 && subleaf == 1) {
    *eax = level >= 4 ? 1 << 5 : 0;
  }
}

int main(void) {
  gotoblas_dynamic_init();
  puts(gotoblas_corename());
  return 0;
}
