// SPDX-License-Identifier: Apache-2.0
// Algebraic functions of one operand by the level's vectors; all defined to the bit by IEEE 754 or
// wrapping integers.
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct Exact {
  static constexpr Tail kTail = Tail::kScalar;
};

struct Abs : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return absolute(x);
    return x < V{} ? wrap_sub(V{}, x) : x;
  }
};
struct Neg : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return -x;
    return wrap_sub(V{}, x);
  }
};
struct Sign : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V one = splat<V>(1), zero{};
    const V y = x < zero ? wrap_sub(zero, one) : x;
    return x > zero ? one : (x == zero ? zero : y);
  }
};
struct Reciprocal : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return splat<V>(1) / x;
  }
};
struct Square : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return wrap_mul(x, x);
  }
};
struct Sqrt : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return square_root(x);
  }
};
struct Rsqrt : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return splat<V>(1) / square_root(x);
  }
};

// Beyond 2^mantissa every number is whole; below, adding and taking it away rounds to nearest,
// halves to even.
template <class V>
TN_INLINE V nearest(V x) {
  const V whole = splat<V>(sizeof(ElementOf<V>) == 4 ? ElementOf<V>(8388608.0)
                                                     : ElementOf<V>(4503599627370496.0));
  const V a = absolute(x);
  return copy_sign(a < whole ? (a + whole) - whole : a, x);
}
struct Round : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    if constexpr (is_float_vec<V>) return nearest(x);
    return x;
  }
};
struct Floor : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V n = nearest(x);
    return copy_sign(n > x ? n - splat<V>(1) : n, x);
  }
};
struct Ceil : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    const V n = nearest(x);
    return copy_sign(n < x ? n + splat<V>(1) : n, x);
  }
};

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::TileOp kOps[] = {
    {"Abs", kF, unary<Abs, float>(), 0.05f},
    {"Abs", kD, unary<Abs, double>(), 0.1f},
    {"Abs", kI, unary<Abs, int32_t>(), 0.05f},
    {"Abs", kL, unary<Abs, int64_t>(), 0.1f},
    {"Neg", kF, unary<Neg, float>(), 0.05f},
    {"Neg", kD, unary<Neg, double>(), 0.1f},
    {"Neg", kI, unary<Neg, int32_t>(), 0.05f},
    {"Neg", kL, unary<Neg, int64_t>(), 0.1f},
    {"Sign", kF, unary<Sign, float>(), 0.08f},
    {"Sign", kD, unary<Sign, double>(), 0.15f},
    {"Sign", kI, unary<Sign, int32_t>(), 0.08f},
    {"Sign", kL, unary<Sign, int64_t>(), 0.2f},
    {"Reciprocal", kF, unary<Reciprocal, float>(), 0.2f},
    {"Reciprocal", kD, unary<Reciprocal, double>(), 0.6f},
    {"Square", kF, unary<Square, float>(), 0.05f},
    {"Square", kD, unary<Square, double>(), 0.1f},
    {"Square", kI, unary<Square, int32_t>(), 0.05f},
    {"Square", kL, unary<Square, int64_t>(), 0.3f},
    {"Sqrt", kF, unary<Sqrt, float>(), 0.3f},
    {"Sqrt", kD, unary<Sqrt, double>(), 1.0f},
    {"Rsqrt", kF, unary<Rsqrt, float>(), 0.5f},
    {"Rsqrt", kD, unary<Rsqrt, double>(), 1.5f},
    {"Floor", kF, unary<Floor, float>(), 0.1f},
    {"Floor", kD, unary<Floor, double>(), 0.2f},
    {"Ceil", kF, unary<Ceil, float>(), 0.1f},
    {"Ceil", kD, unary<Ceil, double>(), 0.2f},
    {"Round", kF, unary<Round, float>(), 0.1f},
    {"Round", kD, unary<Round, double>(), 0.2f},
    {"Round", kI, unary<Round, int32_t>(), 0.05f},
    {"Round", kL, unary<Round, int64_t>(), 0.1f},
    {"Rint", kF, unary<Round, float>(), 0.1f},
    {"Rint", kD, unary<Round, double>(), 0.2f},
};

}  // namespace

void register_unary_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
