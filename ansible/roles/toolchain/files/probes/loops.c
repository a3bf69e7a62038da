// SPDX-License-Identifier: Apache-2.0
// vectorised loops: tails, overlapping memory, NaN in comparisons, reductions in order
#include <math.h>
#include <string.h>

#define WIDTH 1031

static float in[WIDTH], out[WIDTH];
static double wide[WIDTH];

__attribute__((noinline)) static void larger(const float* a, float b, float* c, long n) {
  for (long i = 0; i < n; ++i) c[i] = a[i] >= b || a[i] != a[i] ? a[i] : b;
}

__attribute__((noinline)) static void shifted(double* a, long n) {
  for (long i = 0; i + 5 < n; ++i) a[i + 5] = a[i] + 1;
}

__attribute__((noinline)) static float total(const float* a, long n) {
  float sum = 0;
  for (long i = 0; i < n; ++i) sum += a[i];
  return sum;
}

int main(void) {
  for (long n = 0; n < WIDTH; n += 13) {
    for (long i = 0; i < WIDTH; ++i) in[i] = i % 7 == 3 ? NAN : (float)(i % 11) - 5;
    memset(out, 0x55, sizeof out);
    larger(in, 0.5f, out, n);
    for (long i = 0; i < n; ++i) {
      volatile float x = in[i];
      float expected = isnan(x) ? x : fmaxf(x, 0.5f);
      if (isnan(expected) ? !isnan(out[i]) : out[i] != expected) return 1;
    }
    unsigned char rest;
    memcpy(&rest, (unsigned char*)&out[n], 1);
    if (rest != 0x55) return 2;
  }
  shifted(wide, WIDTH);
  for (long i = 0; i < WIDTH; ++i) {
    if (wide[i] != (double)(i / 5)) return 3;
  }
  // Sums of floats have one order: without -ffast-math nobody may choose another.
  for (long i = 0; i < WIDTH; ++i) in[i] = i % 2 ? 1e8f : 1.0f;
  volatile float expected = 0;
  for (long i = 0; i < WIDTH; ++i) expected = expected + in[i];
  return total(in, WIDTH) == expected ? 0 : 4;
}
