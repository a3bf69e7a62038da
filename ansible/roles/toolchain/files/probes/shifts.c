// SPDX-License-Identifier: Apache-2.0
// shifts by variable amounts in vectorised loops (numpy#22417: ICE in expand_shift_1 on AArch64)
#include <stdint.h>
#include <stdlib.h>

#define WIDTH 257

// The amount may be as wide as the type: then the result is all sign, or zero.
#define LOOP(type, name)                                              \
  static type name##_one(type a, type b) {                            \
    if ((unsigned long long)b < sizeof(a) * 8) return (type)(a >> b); \
    return (type)(a < 0 ? -1 : 0);                                    \
  }                                                                   \
  static void name(const type* a, const type* b, type* out, long n) { \
    for (long i = 0; i < n; ++i) out[i] = name##_one(a[i], b[i]);     \
  }                                                                   \
  static void name##_by(const type* a, type b, type* out, long n) {   \
    for (long i = 0; i < n; ++i) out[i] = name##_one(a[i], b);        \
  }                                                                   \
  static int name##_check(void) {                                     \
    static type a[WIDTH], b[WIDTH], out[WIDTH];                       \
    for (long i = 0; i < WIDTH; ++i) {                                \
      a[i] = (type)(i * 2654435761u - 12345u);                        \
      b[i] = (type)(i % (sizeof(type) * 8 + 3));                      \
    }                                                                 \
    name(a, b, out, WIDTH);                                           \
    for (long i = 0; i < WIDTH; ++i) {                                \
      volatile type x = a[i], y = b[i];                               \
      if (out[i] != name##_one(x, y)) return 1;                       \
    }                                                                 \
    name##_by(a, 3, out, WIDTH);                                      \
    for (long i = 0; i < WIDTH; ++i) {                                \
      volatile type x = a[i];                                         \
      if (out[i] != (type)(x >> 3)) return 1;                         \
    }                                                                 \
    return 0;                                                         \
  }

LOOP(int8_t, i8)
LOOP(uint8_t, u8)
LOOP(int16_t, i16)
LOOP(uint16_t, u16)
LOOP(int32_t, i32)
LOOP(uint32_t, u32)
LOOP(int64_t, i64)
LOOP(uint64_t, u64)

int main(void) {
  return i8_check() || u8_check() || i16_check() || u16_check() || i32_check() || u32_check() ||
         i64_check() || u64_check();
}
