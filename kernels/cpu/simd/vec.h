// SPDX-License-Identifier: Apache-2.0
// Vectors of the level's natural width, on the compilers' vector extensions: the same source gives
// SSE2, AVX2, AVX-512, NEON or plain code. Included only by files compiled per level; nothing here
// has a name outside its library. What needs the machine's own instructions (square root, fused
// multiply-add) is in vec_fma.h. Whatever is written against `V` below works on a plain scalar too,
// so an element-wise op has one definition. A GPU's kernels include the same headers for scalars
// alone: there Vec<T> is T, and a comparison gives one bool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/side.h"

namespace treenail::TN_SIDE {

#if !defined(TN_GPU)
#if defined(__AVX512F__)
inline constexpr int kVecBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVecBytes = 32;
#else
inline constexpr int kVecBytes = 16;
#endif

template <class T, int kBytes>
struct VecType {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vec = typename VecType<T, kVecBytes>::type;
template <class T>
inline constexpr int kLanes = kVecBytes / static_cast<int>(sizeof(T));

// At most 256 bits, where 512 do not pay: few columns would leave most of them empty, and reading
// from memory was a tenth to a quarter slower by them (Zen 4).
template <class T>
using Vec256 = typename VecType<T, std::min(kVecBytes, 32)>::type;

// As many floats as there are doubles in a Vec<double>.
using HalfVecF = VecType<float, kVecBytes / 2>::type;

#else
template <class T>
using Vec = T;
using HalfVecF = float;
#endif

using VecF = Vec<float>;
using VecD = Vec<double>;
using VecI = Vec<int32_t>;
using VecL = Vec<int64_t>;

template <class V>
struct Element {
  using type = std::remove_cvref_t<decltype(V{}[0])>;
};
template <class T>
requires std::is_arithmetic_v<T>
struct Element<T> {
  using type = T;
};
template <class V>
using ElementOf = typename Element<V>::type;
template <class V>
inline constexpr bool is_vec = !std::is_arithmetic_v<V>;

template <class V>
inline constexpr int kLanesOf = sizeof(V) / sizeof(ElementOf<V>);

template <class V, class T>
TN_INLINE V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
TN_INLINE void store(T* p, V v) {
  std::memcpy(p, &v, sizeof(V));
}
// n < lanes elements; the other lanes are zero.
template <class V, class T>
TN_INLINE V load_part(const T* p, int64_t n) {
  V v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <class V, class T>
TN_INLINE void store_part(T* p, V v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}

// Every lane is `x` (also for -0 and NaN: x - 0 is x).
template <class V>
TN_INLINE V splat(ElementOf<V> x) {
  if constexpr (is_vec<V>) {
    return x - V{};
  } else {
    return x;
  }
}

// Bits as another type of the same width.
template <class To, class From>
TN_INLINE To bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &v, sizeof(To));
  return to;
}

// The integer vector (or scalar) that masks and exponents of V live in, signed and unsigned.
template <class V>
struct IntOf;
#if !defined(TN_GPU)
template <class V>
requires(is_vec<V>) struct IntOf<V> {
  using type = typename VecType<std::conditional_t<sizeof(ElementOf<V>) == 4, int32_t, int64_t>,
                                sizeof(V)>::type;
  using unsigned_type =
      typename VecType<std::conditional_t<sizeof(ElementOf<V>) == 4, uint32_t, uint64_t>,
                       sizeof(V)>::type;
};
#endif
template <class V>
requires std::is_arithmetic_v<V>
struct IntOf<V> {
  using type = std::conditional_t<sizeof(V) == 4, int32_t, int64_t>;
  using unsigned_type = std::conditional_t<sizeof(V) == 4, uint32_t, uint64_t>;
};
template <class V>
using Int = typename IntOf<V>::type;
template <class V>
using Unsigned = typename IntOf<V>::unsigned_type;

// What a comparison gives: lanes of ones or zeros, or a bool.
template <class V>
using Mask = std::conditional_t<is_vec<V>, Int<V>, bool>;
// Where a mask is not: ~ would make a true int of either bool.
template <class M>
TN_INLINE auto unset(M mask) {
  if constexpr (is_vec<M>) {
    return ~mask;
  } else {
    return !mask;
  }
}

// Numbers that functions for a GPU may name, which std::numeric_limits' functions are not.
template <class T>
struct Limits {
  static constexpr T kLeast = std::numeric_limits<T>::min();  // of floats: the smallest normal one
  static constexpr T kMost = std::numeric_limits<T>::max();
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
};

template <class V>
inline constexpr bool is_float_vec = std::is_floating_point_v<ElementOf<V>>;

// Integer arithmetic modulo 2^bits: C++ leaves signed overflow undefined.
template <class V>
TN_INLINE V wrap_add(V a, V b) {
  if constexpr (is_float_vec<V>) {
    return a + b;
  } else {
    return (V)((Unsigned<V>)a + (Unsigned<V>)b);
  }
}
template <class V>
TN_INLINE V wrap_sub(V a, V b) {
  if constexpr (is_float_vec<V>) {
    return a - b;
  } else {
    return (V)((Unsigned<V>)a - (Unsigned<V>)b);
  }
}
template <class V>
TN_INLINE V wrap_mul(V a, V b) {
  if constexpr (is_float_vec<V>) {
    return a * b;
  } else {
    return (V)((Unsigned<V>)a * (Unsigned<V>)b);
  }
}

// |x| and the sign bit of x, by bits.
template <class V>
TN_INLINE V sign_bit(V x) {
  using I = Unsigned<V>;
  constexpr int kShift = sizeof(ElementOf<V>) * 8 - 1;
  return bits<V>((I)(bits<I>(x) >> kShift << kShift));
}
template <class V>
TN_INLINE V absolute(V x) {
  using I = Unsigned<V>;
  return bits<V>((I)(bits<I>(x) << 1 >> 1));
}
// The greatest power of two that is not above x, for positive normal x.
template <class V>
TN_INLINE V power_of_two(V x) {
  using I = Unsigned<V>;
  constexpr int kMantissa = sizeof(ElementOf<V>) == 4 ? 23 : 52;
  return bits<V>((I)(bits<I>(x) >> kMantissa << kMantissa));
}
// |x| with the sign of `from`.
template <class V>
TN_INLINE V copy_sign(V x, V from) {
  using I = Unsigned<V>;
  return bits<V>((I)(bits<I>(absolute(x)) | bits<I>(sign_bit(from))));
}

}  // namespace treenail::TN_SIDE
