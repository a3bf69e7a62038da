// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients. Those of float that need an exponential use vec_math.h.
#pragma once

#include "kernels/cpu/simd/vec_math.h"
#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

inline constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

struct Relu : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return greater_of(V{}, x);
  }
};
struct Relu6 : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return lesser_of(number<V>(6), greater_of(V{}, x));
  }
};
struct Softsign : Exact {
  template <class V>
  TN_INLINE static V apply(V x) {
    return x / (number<V>(1) + absolute(x));
  }
};
struct Elu : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return x < VecF{} ? expm1(x) : x; }
};
struct Selu : Polynomial {
  TN_INLINE static VecF apply(VecF x) {
    return x < VecF{} ? number<VecF>(kSeluScale * kSeluAlpha) * expm1(x)
                      : number<VecF>(kSeluScale) * x;
  }
};
struct Softplus : Polynomial {  // max(x, 0) + log(1 + e^-|x|)
  TN_INLINE static VecF apply(VecF x) {
    return greater_of(VecF{}, x) + log1p_unit(exp(-absolute(x)));
  }
};

// gradients g, features or outputs x.
struct ReluGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V g, V x) {
    return x > V{} ? g : V{};
  }
};
struct Relu6Grad : Exact {
  template <class V>
  TN_INLINE static V apply(V g, V x) {
    const V below = x > V{} ? g : V{};
    return x < number<V>(6) ? below : V{};
  }
};
struct EluGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V g, V y) {
    return y < V{} ? g * (y + number<V>(1)) : g;
  }
};
struct SeluGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V g, V y) {
    return y < V{} ? g * (y + number<V>(kSeluScale * kSeluAlpha)) : g * number<V>(kSeluScale);
  }
};
struct SoftsignGrad : Exact {
  template <class V>
  TN_INLINE static V apply(V g, V x) {
    const V d = number<V>(1) + absolute(x);
    return g / (d * d);
  }
};
struct SoftplusGrad : Polynomial {
  template <class V>
  TN_INLINE static V apply(V g, V x) {
    return g * sigmoid(x);
  }
};

// x Φ(x) = x erfc(-x/√2)/2. For negative x erfc keeps its precision; 1 + erf would cancel.
inline constexpr double kRootHalf = 0.70710678118654752440;
TN_INLINE VecF normal_distribution(VecF x) {
  const ErfParts p = erf_parts(x * number<VecF>(kRootHalf));
  const VecF half_tail = number<VecF>(0.5) * p.tail;
  const VecF far = x < VecF{} ? half_tail : number<VecF>(1) - half_tail;
  return p.large ? far : mul_add(number<VecF>(0.5), p.small, number<VecF>(0.5));
}
// 2u with u = sqrt(2/π) (x + 0.044715 x³): (1 + tanh u)/2 = sigmoid(2u).
inline constexpr double kTwoRootTwoByPi = 1.59576912160573071176, kCubic = 0.044715;
TN_INLINE VecF approximate_argument(VecF x) {
  return x * mul_add(x * x, number<VecF>(kTwoRootTwoByPi * kCubic), number<VecF>(kTwoRootTwoByPi));
}

struct Gelu : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return x * normal_distribution(x); }
};
struct ApproximateGelu : Polynomial {
  TN_INLINE static VecF apply(VecF x) { return x * sigmoid(approximate_argument(x)); }
};
struct GeluGrad : Polynomial {  // g (Φ(x) + x φ(x))
  TN_INLINE static VecF apply(VecF g, VecF x) {
    const VecF density = number<VecF>(0.39894228040143267794) * exp(number<VecF>(-0.5) * x * x);
    return g * mul_add(x, density, normal_distribution(x));
  }
};
struct ApproximateGeluGrad : Polynomial {  // with s = sigmoid(v): g s (1 + x v' (1 - s))
  TN_INLINE static VecF apply(VecF g, VecF x) {
    const VecF s = sigmoid(approximate_argument(x));
    const VecF slope =
        mul_add(x * x, number<VecF>(3 * kTwoRootTwoByPi * kCubic), number<VecF>(kTwoRootTwoByPi));
    return g * (s * mul_add(x * slope, number<VecF>(1) - s, number<VecF>(1)));
  }
};

// Where the slope depends on attribute alpha.
struct LeakyRelu {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V x, V alpha) {
    return x > V{} ? x : x * alpha;
  }
};
struct LeakyReluGrad {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V g, V x, V alpha) {
    return x > V{} ? g : g * alpha;
  }
};
}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_ACTIVATION_UNARY_OPS(ROW)    \
  ROW(Relu, Relu, float, 0.05f)         \
  ROW(Relu, Relu, double, 0.1f)         \
  ROW(Relu, Relu, int32_t, 0.05f)       \
  ROW(Relu, Relu, int64_t, 0.1f)        \
  ROW(Relu6, Relu6, float, 0.05f)       \
  ROW(Relu6, Relu6, double, 0.1f)       \
  ROW(Relu6, Relu6, int32_t, 0.05f)     \
  ROW(Relu6, Relu6, int64_t, 0.1f)      \
  ROW(Softsign, Softsign, float, 0.2f)  \
  ROW(Softsign, Softsign, double, 0.6f) \
  ROW(Elu, Elu, float, 0.5f)            \
  ROW(Selu, Selu, float, 0.5f)          \
  ROW(Softplus, Softplus, float, 0.8f)
#define TN_ACTIVATION_BINARY_OPS(ROW)           \
  ROW(ReluGrad, ReluGrad, float, 0.05f)         \
  ROW(ReluGrad, ReluGrad, double, 0.1f)         \
  ROW(ReluGrad, ReluGrad, int32_t, 0.05f)       \
  ROW(ReluGrad, ReluGrad, int64_t, 0.1f)        \
  ROW(Relu6Grad, Relu6Grad, float, 0.06f)       \
  ROW(Relu6Grad, Relu6Grad, double, 0.1f)       \
  ROW(Relu6Grad, Relu6Grad, int32_t, 0.06f)     \
  ROW(Relu6Grad, Relu6Grad, int64_t, 0.1f)      \
  ROW(EluGrad, EluGrad, float, 0.06f)           \
  ROW(EluGrad, EluGrad, double, 0.1f)           \
  ROW(SeluGrad, SeluGrad, float, 0.06f)         \
  ROW(SeluGrad, SeluGrad, double, 0.1f)         \
  ROW(SoftsignGrad, SoftsignGrad, float, 0.3f)  \
  ROW(SoftsignGrad, SoftsignGrad, double, 0.8f) \
  ROW(SoftplusGrad, SoftplusGrad, float, 0.6f)  \
  ROW(SoftplusGrad, SoftplusGrad, double, 1.6f)

// With attribute alpha.
#define TN_LEAKY_RELU_OPS(UNARY, BINARY)             \
  UNARY(LeakyRelu, LeakyRelu, float, 0.06f)          \
  UNARY(LeakyRelu, LeakyRelu, double, 0.1f)          \
  BINARY(LeakyReluGrad, LeakyReluGrad, float, 0.06f) \
  BINARY(LeakyReluGrad, LeakyReluGrad, double, 0.1f)

// Attribute approximate chooses the second definition.
#define TN_GELU_OPS(UNARY, BINARY)                \
  UNARY(Gelu, Gelu, ApproximateGelu, float, 0.9f) \
  BINARY(GeluGrad, GeluGrad, ApproximateGeluGrad, float, 1.3f)
