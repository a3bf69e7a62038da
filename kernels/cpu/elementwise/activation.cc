// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients by the level's vectors. Those of float that need an
// exponential use vec_math.h; those of double that need more than exp: host/elementwise/libm.cc.
#include "framework/op/op_def.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

template <class V>
TN_INLINE V number(double x) {
  return splat<V>(static_cast<ElementOf<V>>(x));
}

struct Exact {
  static constexpr Tail kTail = Tail::kScalar;
};
struct Polynomial {
  static constexpr Tail kTail = Tail::kPadded;
};

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
constexpr double kRootHalf = 0.70710678118654752440;
TN_INLINE VecF normal_distribution(VecF x) {
  const ErfParts p = erf_parts(x * number<VecF>(kRootHalf));
  const VecF half_tail = number<VecF>(0.5) * p.tail;
  const VecF far = x < VecF{} ? half_tail : number<VecF>(1) - half_tail;
  return p.large ? far : mul_add(number<VecF>(0.5), p.small, number<VecF>(0.5));
}
// 2u with u = sqrt(2/π) (x + 0.044715 x³): (1 + tanh u)/2 = sigmoid(2u).
constexpr double kTwoRootTwoByPi = 1.59576912160573071176, kCubic = 0.044715;
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

// Attribute `approximate` chooses between two loops.
template <class Accurate, class Approximate>
void gelu_loop(void* y, const void* a, const void*, const void*, int64_t n,
               const LoopParams& params) {
  auto* r = static_cast<float*>(y);
  const auto* x = static_cast<const float*>(a);
  if (params.value[0] != 0) {
    run_unary<Approximate>(r, x, n);
  } else {
    run_unary<Accurate>(r, x, n);
  }
}
void gelu_grad_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                    const LoopParams& params) {
  constexpr int64_t kL = kLanes<float>;
  auto* r = static_cast<float*>(y);
  const auto* g = static_cast<const float*>(a);
  const auto* x = static_cast<const float*>(b);
  if (params.value[0] != 0) {
    run_binary<ApproximateGeluGrad>(r, g, kL, x, kL, n);
  } else {
    run_binary<GeluGrad>(r, g, kL, x, kL, n);
  }
}
template <class Accurate, class Approximate>
constexpr Loops gelu_loops() {
  return {{gelu_loop<Accurate, Approximate>}, either_unary_forms<Accurate, Approximate, float>()};
}
constexpr Loops gelu_grad_loops() {
  return {{gelu_grad_loop}, either_binary_forms<GeluGrad, ApproximateGeluGrad, float>()};
}
void read_approximate(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_bool("approximate") ? 1 : 0;
}

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
template <class T>
void leaky_relu_loop(void* y, const void* a, const void*, const void*, int64_t n,
                     const LoopParams& params) {
  const T alpha = static_cast<T>(params.value[0]);
  run_blocks(static_cast<T*>(y), static_cast<const T*>(a), n,
             [alpha](T x) { return LeakyRelu::apply(x, alpha); });
}
template <class T>
void leaky_relu_grad_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                          const LoopParams& params) {
  const T alpha = static_cast<T>(params.value[0]);
  run_blocks(static_cast<T*>(y), static_cast<const T*>(a), kBlock, static_cast<const T*>(b), kBlock,
             n, [alpha](T g, T x) { return LeakyReluGrad::apply(g, x, alpha); });
}
template <class T>
constexpr Loops leaky_relu_loops() {
  return {{leaky_relu_loop<T>}, unary_forms<LeakyRelu, T>()};
}
template <class T>
constexpr Loops leaky_relu_grad_loops() {
  return {{leaky_relu_grad_loop<T>}, binary_forms<LeakyReluGrad, T>()};
}
void read_alpha(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_float("alpha");
}

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::TileOp kOps[] = {
    {"Relu", kF, unary<Relu, float>(), 0.05f},
    {"Relu", kD, unary<Relu, double>(), 0.1f},
    {"Relu", kI, unary<Relu, int32_t>(), 0.05f},
    {"Relu", kL, unary<Relu, int64_t>(), 0.1f},
    {"Relu6", kF, unary<Relu6, float>(), 0.05f},
    {"Relu6", kD, unary<Relu6, double>(), 0.1f},
    {"Relu6", kI, unary<Relu6, int32_t>(), 0.05f},
    {"Relu6", kL, unary<Relu6, int64_t>(), 0.1f},
    {"LeakyRelu", kF, leaky_relu_loops<float>(), 0.06f, read_alpha},
    {"LeakyRelu", kD, leaky_relu_loops<double>(), 0.1f, read_alpha},
    {"Softsign", kF, unary<Softsign, float>(), 0.2f},
    {"Softsign", kD, unary<Softsign, double>(), 0.6f},
    {"Elu", kF, unary<Elu, float>(), 0.5f},
    {"Selu", kF, unary<Selu, float>(), 0.5f},
    {"Softplus", kF, unary<Softplus, float>(), 0.8f},
    {"Gelu", kF, gelu_loops<Gelu, ApproximateGelu>(), 0.9f, read_approximate},
    {"ReluGrad", kF, binary<ReluGrad, float>(), 0.05f},
    {"ReluGrad", kD, binary<ReluGrad, double>(), 0.1f},
    {"ReluGrad", kI, binary<ReluGrad, int32_t>(), 0.05f},
    {"ReluGrad", kL, binary<ReluGrad, int64_t>(), 0.1f},
    {"Relu6Grad", kF, binary<Relu6Grad, float>(), 0.06f},
    {"Relu6Grad", kD, binary<Relu6Grad, double>(), 0.1f},
    {"Relu6Grad", kI, binary<Relu6Grad, int32_t>(), 0.06f},
    {"Relu6Grad", kL, binary<Relu6Grad, int64_t>(), 0.1f},
    {"LeakyReluGrad", kF, leaky_relu_grad_loops<float>(), 0.06f, read_alpha},
    {"LeakyReluGrad", kD, leaky_relu_grad_loops<double>(), 0.1f, read_alpha},
    {"EluGrad", kF, binary<EluGrad, float>(), 0.06f},
    {"EluGrad", kD, binary<EluGrad, double>(), 0.1f},
    {"SeluGrad", kF, binary<SeluGrad, float>(), 0.06f},
    {"SeluGrad", kD, binary<SeluGrad, double>(), 0.1f},
    {"SoftsignGrad", kF, binary<SoftsignGrad, float>(), 0.3f},
    {"SoftsignGrad", kD, binary<SoftsignGrad, double>(), 0.8f},
    {"SoftplusGrad", kF, binary<SoftplusGrad, float>(), 0.6f},
    {"SoftplusGrad", kD, binary<SoftplusGrad, double>(), 1.6f},
    {"GeluGrad", kF, gelu_grad_loops(), 1.3f, read_approximate},
};

}  // namespace

void register_activation_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
