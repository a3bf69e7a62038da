// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, tanh, sigmoid and erf by the level's vectors. Float functions that go
// through double: through_double.cc; those of the C library: host/elementwise/libm.cc.
#include <limits>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct Polynomial {
  static constexpr Tail kTail = Tail::kPadded;
};

struct Exp : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return exp(x);
  }
  template <class V>
  TN_INLINE static auto usual(V x) {
    return absolute(x) <= splat<V>(kExpNormal<V>);
  }
  template <class V>
  TN_INLINE static V apply_usual(V x) {
    return exp_normal(x);
  }
};
struct Expm1 : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return expm1(x); }
};
struct Log : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return log(x);
  }
  template <class V>
  TN_INLINE static auto usual(V x) {
    using L = std::numeric_limits<ElementOf<V>>;
    return (x >= splat<V>(L::min())) & (x <= splat<V>(L::max()));
  }
  template <class V>
  TN_INLINE static V apply_usual(V x) {
    return log_normal(x);
  }
};
struct Tanh : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return tanh(x); }
};
struct Sigmoid : Polynomial {
  template <class V>
  TN_INLINE static V apply(V x) {
    return sigmoid(x);
  }
};
struct Erf : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return erf(x); }
};
// dy (1 - y²) and dy y (1 - y): exact operations, so body and tail agree.
struct TanhGrad {
  static constexpr Tail kTail = Tail::kScalar;
  template <class V>
  TN_INLINE static V apply(V y, V dy) {
    return dy * (splat<V>(ElementOf<V>(1)) - y * y);
  }
};
struct SigmoidGrad {
  static constexpr Tail kTail = Tail::kScalar;
  template <class V>
  TN_INLINE static V apply(V y, V dy) {
    return dy * (y * (splat<V>(ElementOf<V>(1)) - y));
  }
};

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;

constexpr host::TileOp kOps[] = {
    {"Exp", kF, unary<Exp, float>(), 0.35f},
    {"Exp", kD, unary<Exp, double>(), 1.0f},
    {"Expm1", kF, unary<Expm1, float>(), 0.4f},
    {"Log", kF, unary<Log, float>(), 0.5f},
    {"Log", kD, unary<Log, double>(), 1.5f},
    {"Tanh", kF, unary<Tanh, float>(), 0.6f},
    {"Sigmoid", kF, unary<Sigmoid, float>(), 0.5f},
    {"Sigmoid", kD, unary<Sigmoid, double>(), 1.5f},
    {"Erf", kF, unary<Erf, float>(), 0.8f},
    {"TanhGrad", kF, binary<TanhGrad, float>(), 0.06f},
    {"TanhGrad", kD, binary<TanhGrad, double>(), 0.12f},
    {"SigmoidGrad", kF, binary<SigmoidGrad, float>(), 0.06f},
    {"SigmoidGrad", kD, binary<SigmoidGrad, double>(), 0.12f},
};

}  // namespace

void register_transcendental_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
}

}  // namespace treenail::cpu
