// SPDX-License-Identifier: Apache-2.0
// Functions of real numbers that the C library computes: doubles (but exp, log and sigmoid:
// kernels/cpu/elementwise/transcendental.cc) and the less frequent functions of floats. The library
// is well within one unit in the last place and dispatches on the CPU itself.
#include <cmath>

#include "framework/op/op_def.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"
#include "kernels/host/special/lgamma.h"

namespace treenail::host {
namespace {

#define TREENAIL_FUNCTION(Name, expression) \
  struct Name {                             \
    template <class T>                      \
    static T apply(T x) {                   \
      return expression;                    \
    }                                       \
  }
TREENAIL_FUNCTION(Expm1, std::expm1(x));
TREENAIL_FUNCTION(Log1p, std::log1p(x));
TREENAIL_FUNCTION(Sin, std::sin(x));
TREENAIL_FUNCTION(Cos, std::cos(x));
TREENAIL_FUNCTION(Tan, std::tan(x));
TREENAIL_FUNCTION(Asin, std::asin(x));
TREENAIL_FUNCTION(Acos, std::acos(x));
TREENAIL_FUNCTION(Atan, std::atan(x));
TREENAIL_FUNCTION(Sinh, std::sinh(x));
TREENAIL_FUNCTION(Cosh, std::cosh(x));
TREENAIL_FUNCTION(Tanh, std::tanh(x));
TREENAIL_FUNCTION(Asinh, std::asinh(x));
TREENAIL_FUNCTION(Acosh, std::acosh(x));
TREENAIL_FUNCTION(Atanh, std::atanh(x));
TREENAIL_FUNCTION(Erf, std::erf(x));
TREENAIL_FUNCTION(Erfc, std::erfc(x));
TREENAIL_FUNCTION(Lgamma, lgamma_of(x));
TREENAIL_FUNCTION(Elu, (x < 0 ? std::expm1(x) : x));
TREENAIL_FUNCTION(Selu, (x < 0 ? T(1.0507009873554805 * 1.6732632423543772) * std::expm1(x)
                               : T(1.0507009873554805) * x));
TREENAIL_FUNCTION(Softplus,
                  ((x > 0 ? x : (x != x ? x : T(0))) + std::log1p(std::exp(-std::abs(x)))));
#undef TREENAIL_FUNCTION

struct Power {
  template <class T>
  static T apply(T x, T y) {
    return std::pow(x, y);
  }
};
struct Atan2 {
  template <class T>
  static T apply(T y, T x) {
    return std::atan2(y, x);
  }
};
struct Xlogy {
  template <class T>
  static T apply(T x, T y) {
    return x == 0 ? T(0) : x * std::log(y);
  }
};

constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kTwoRootTwoByPi = 1.59576912160573071176, kCubic = 0.044715;

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
double approximate_argument(double x) {
  return x * (kTwoRootTwoByPi + kTwoRootTwoByPi * kCubic * x * x);
}

void gelu(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams& params) {
  const auto* p = static_cast<const double*>(a);
  auto* r = static_cast<double*>(y);
  const bool approximate = params.value[0] != 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = p[i];
    r[i] = approximate ? x * sigmoid(approximate_argument(x)) : 0.5 * x * std::erfc(-x * kRootHalf);
  }
}

double gelu_slope(double x) {
  const double density = 0.39894228040143267794 * std::exp(-0.5 * x * x);
  return 0.5 * std::erfc(-x * kRootHalf) + x * density;
}
double approximate_gelu_slope(double x) {
  const double s = sigmoid(approximate_argument(x));
  const double slope = kTwoRootTwoByPi + 3 * kTwoRootTwoByPi * kCubic * x * x;
  return s + s * (1 - s) * x * slope;
}
void gelu_grad(void* y, const void* a, const void* b, const void*, int64_t n,
               const LoopParams& params) {
  const auto* g = static_cast<const double*>(a);
  const auto* x = static_cast<const double*>(b);
  auto* r = static_cast<double*>(y);
  const bool approximate = params.value[0] != 0;
  for (int64_t i = 0; i < n; ++i) {
    r[i] = g[i] * (approximate ? approximate_gelu_slope(x[i]) : gelu_slope(x[i]));
  }
}
void read_approximate(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_bool("approximate") ? 1 : 0;
}

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;

constexpr TileOp kOps[] = {
    {"Expm1", kD, each_unary<Expm1, double>(), 12},
    {"Log1p", kD, each_unary<Log1p, double>(), 12},
    {"Sin", kD, each_unary<Sin, double>(), 10},
    {"Cos", kD, each_unary<Cos, double>(), 10},
    {"Tan", kD, each_unary<Tan, double>(), 15},
    {"Asin", kF, each_unary<Asin, float>(), 6},
    {"Asin", kD, each_unary<Asin, double>(), 12},
    {"Acos", kF, each_unary<Acos, float>(), 6},
    {"Acos", kD, each_unary<Acos, double>(), 12},
    {"Atan", kF, each_unary<Atan, float>(), 6},
    {"Atan", kD, each_unary<Atan, double>(), 12},
    {"Sinh", kD, each_unary<Sinh, double>(), 15},
    {"Cosh", kD, each_unary<Cosh, double>(), 12},
    {"Tanh", kD, each_unary<Tanh, double>(), 15},
    {"Asinh", kD, each_unary<Asinh, double>(), 20},
    {"Acosh", kD, each_unary<Acosh, double>(), 15},
    {"Atanh", kD, each_unary<Atanh, double>(), 15},
    {"Erf", kD, each_unary<Erf, double>(), 15},
    {"Erfc", kF, each_unary<Erfc, float>(), 10},
    {"Erfc", kD, each_unary<Erfc, double>(), 15},
    {"Lgamma", kD, each_unary<Lgamma, double>(), 25},
    {"Elu", kD, each_unary<Elu, double>(), 12},
    {"Selu", kD, each_unary<Selu, double>(), 12},
    {"Softplus", kD, each_unary<Softplus, double>(), 18},
    {"Pow", kD, each_binary<Power, double>(), 20},
    {"Atan2", kF, each_binary<Atan2, float>(), 10},
    {"Atan2", kD, each_binary<Atan2, double>(), 18},
    {"Xlogy", kF, each_binary<Xlogy, float>(), 5},
    {"Xlogy", kD, each_binary<Xlogy, double>(), 6},
    {"Gelu", kD, {{gelu}}, 20, read_approximate},
    {"GeluGrad", kD, {{gelu_grad}}, 25, read_approximate},
};

}  // namespace

void register_libm_kernels(KernelRegistry& registry) { add_tile_ops(registry, kOps); }

}  // namespace treenail::host
