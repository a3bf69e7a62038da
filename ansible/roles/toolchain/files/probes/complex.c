// SPDX-License-Identifier: Apache-2.0
// complex numbers that go through a union and a tail call (numpy#13622: ICE in npy_cacoshf on
// AArch64)
#include <complex.h>
#include <math.h>

#define PAIR(real, letter)                                       \
  typedef struct {                                               \
    real re, im;                                                 \
  } pair##letter;                                                \
  typedef union {                                                \
    pair##letter p;                                              \
    real complex c;                                              \
  } both##letter;                                                \
  __attribute__((noinline)) static pair##letter through##letter( \
      pair##letter x, real complex (*function)(real complex)) {  \
    both##letter in, out;                                        \
    in.p = x;                                                    \
    out.c = function(in.c);                                      \
    return out.p;                                                \
  }                                                              \
  __attribute__((noinline)) static pair##letter tail##letter(    \
      pair##letter x, real complex (*function)(real complex)) {  \
    return through##letter(x, function);                         \
  }

PAIR(float, f)
PAIR(double, d)
PAIR(long double, l)

static int near(long double a, long double b) { return fabsl(a - b) < 1e-5L; }

// acosh(1.5 + 0.5i), from cosh(x + iy) = cosh x cos y + i sinh x sin y.
static int right(long double x, long double y) {
  return near(coshl(x) * cosl(y), 1.5L) && near(sinhl(x) * sinl(y), 0.5L);
}

int main(void) {
  pairf a = tailf((pairf){1.5f, 0.5f}, cacoshf);
  paird b = taild((paird){1.5, 0.5}, cacosh);
  pairl c = taill((pairl){1.5L, 0.5L}, cacoshl);
  return !(right(a.re, a.im) && right(b.re, b.im) && right(c.re, c.im));
}
