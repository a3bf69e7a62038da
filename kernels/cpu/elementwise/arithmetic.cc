// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two operands, by the level's vectors: f32, f64, i32, i64; all that IEEE 754 or
// wrapping integers define to the bit. Division and remainders: division.cc. Half-width types come
// here through the tile engine's conversions; u64 and complex are in host/.
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct Exact {
  static constexpr Tail kTail = Tail::kScalar;
};

struct Commutative : Exact {
  static constexpr bool kCommutes = true;
};

struct Add : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_add(a, b);
  }
};
struct Sub : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_sub(a, b);
  }
};
struct Mul : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return wrap_mul(a, b);
  }
};
struct TrueDiv : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a / b;
  }
};
// A NaN in either operand is the result, as in NumPy.
struct Maximum : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    if constexpr (is_float_vec<V>) return a != a ? a : greater_of(a, b);
    return greater_of(a, b);
  }
};
struct Minimum : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    if constexpr (is_float_vec<V>) return a != a ? a : lesser_of(a, b);
    return lesser_of(a, b);
  }
};
struct SquaredDifference : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    const V d = wrap_sub(a, b);
    return wrap_mul(d, d);
  }
};
struct DivNoNan : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return b == V{} ? V{} : a / b;
  }
};
struct MulNoNan : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return b == V{} ? V{} : a * b;
  }
};
struct Xdivy : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a == V{} ? V{} : a / b;
  }
};

// Floats are ordered as their bits are, the negative ones the other way round.
struct NextAfter : Exact {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    using U = Unsigned<V>;
    const U up = bits<U>(a) + 1, down = bits<U>(a) - 1;
    const V longer = bits<V>(up), shorter = bits<V>(down);
    const V above = a > V{} ? longer : shorter, below = a > V{} ? shorter : longer;
    const V tiny = copy_sign(bits<V>((U)(U{} + 1)), b);
    const V moved = a < b ? above : below;
    const V next = a == V{} ? tiny : moved;
    const V same = a == b ? b : next;
    return (a != a) | (b != b) ? a + b : same;
  }
};

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::TileOp kOps[] = {
    {"Add", kF, binary<Add, float>(), 0.05f},
    {"Add", kD, binary<Add, double>(), 0.1f},
    {"Add", kI, binary<Add, int32_t>(), 0.05f},
    {"Add", kL, binary<Add, int64_t>(), 0.1f},
    {"Sub", kF, binary<Sub, float>(), 0.05f},
    {"Sub", kD, binary<Sub, double>(), 0.1f},
    {"Sub", kI, binary<Sub, int32_t>(), 0.05f},
    {"Sub", kL, binary<Sub, int64_t>(), 0.1f},
    {"Mul", kF, binary<Mul, float>(), 0.05f},
    {"Mul", kD, binary<Mul, double>(), 0.1f},
    {"Mul", kI, binary<Mul, int32_t>(), 0.05f},
    {"Mul", kL, binary<Mul, int64_t>(), 0.3f},
    {"Div", kF, binary<TrueDiv, float>(), 0.2f},
    {"Div", kD, binary<TrueDiv, double>(), 0.6f},
    {"RealDiv", kF, binary<TrueDiv, float>(), 0.2f},
    {"RealDiv", kD, binary<TrueDiv, double>(), 0.6f},
    {"Maximum", kF, binary<Maximum, float>(), 0.06f},
    {"Maximum", kD, binary<Maximum, double>(), 0.12f},
    {"Maximum", kI, binary<Maximum, int32_t>(), 0.05f},
    {"Maximum", kL, binary<Maximum, int64_t>(), 0.1f},
    {"Minimum", kF, binary<Minimum, float>(), 0.06f},
    {"Minimum", kD, binary<Minimum, double>(), 0.12f},
    {"Minimum", kI, binary<Minimum, int32_t>(), 0.05f},
    {"Minimum", kL, binary<Minimum, int64_t>(), 0.1f},
    {"SquaredDifference", kF, binary<SquaredDifference, float>(), 0.05f},
    {"SquaredDifference", kD, binary<SquaredDifference, double>(), 0.1f},
    {"SquaredDifference", kI, binary<SquaredDifference, int32_t>(), 0.05f},
    {"SquaredDifference", kL, binary<SquaredDifference, int64_t>(), 0.3f},
    {"DivNoNan", kF, binary<DivNoNan, float>(), 0.2f},
    {"DivNoNan", kD, binary<DivNoNan, double>(), 0.6f},
    {"MulNoNan", kF, binary<MulNoNan, float>(), 0.05f},
    {"MulNoNan", kD, binary<MulNoNan, double>(), 0.1f},
    {"QuotientGrad", kF, binary<Xdivy, float>(), 0.2f},
    {"QuotientGrad", kD, binary<Xdivy, double>(), 0.6f},
    {"NextAfter", kF, binary<NextAfter, float>(), 0.1f},
    {"NextAfter", kD, binary<NextAfter, double>(), 0.2f},
    {"Xdivy", kF, binary<Xdivy, float>(), 0.2f},
    {"Xdivy", kD, binary<Xdivy, double>(), 0.6f},
};

}  // namespace

void register_arithmetic_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
