// SPDX-License-Identifier: Apache-2.0
// Functions of real numbers that a library computes, one number at a time: doubles (but exp, log
// and sigmoid: transcendental.h) and the less frequent functions of floats. The C library is well
// within one unit in the last place and dispatches on the CPU itself; a GPU has its vendor's.
#pragma once

#include <cmath>

#include "kernels/elementwise/side.h"

namespace treenail::TN_SIDE::library {  // whose names are those of definitions for floats
namespace {

#define TN_FUNCTION(Name, expression) \
  struct Name {                       \
    template <class T>                \
    TN_INLINE static T apply(T x) {   \
      return expression;              \
    }                                 \
  }
TN_FUNCTION(Expm1, std::expm1(x));
TN_FUNCTION(Log1p, std::log1p(x));
TN_FUNCTION(Sin, std::sin(x));
TN_FUNCTION(Cos, std::cos(x));
TN_FUNCTION(Tan, std::tan(x));
TN_FUNCTION(Asin, std::asin(x));
TN_FUNCTION(Acos, std::acos(x));
TN_FUNCTION(Atan, std::atan(x));
TN_FUNCTION(Sinh, std::sinh(x));
TN_FUNCTION(Cosh, std::cosh(x));
TN_FUNCTION(Tanh, std::tanh(x));
TN_FUNCTION(Asinh, std::asinh(x));
TN_FUNCTION(Acosh, std::acosh(x));
TN_FUNCTION(Atanh, std::atanh(x));
TN_FUNCTION(Erf, std::erf(x));
TN_FUNCTION(Erfc, std::erfc(x));
TN_FUNCTION(Elu, (x < 0 ? std::expm1(x) : x));
TN_FUNCTION(Selu, (x < 0 ? T(1.0507009873554805 * 1.6732632423543772) * std::expm1(x)
                         : T(1.0507009873554805) * x));
TN_FUNCTION(Softplus, ((x > 0 ? x : (x != x ? x : T(0))) + std::log1p(std::exp(-std::abs(x)))));
#undef TN_FUNCTION

struct Power {
  template <class T>
  TN_INLINE static T apply(T x, T y) {
    return std::pow(x, y);
  }
};
struct Atan2 {
  template <class T>
  TN_INLINE static T apply(T y, T x) {
    return std::atan2(y, x);
  }
};
struct Xlogy {
  template <class T>
  TN_INLINE static T apply(T x, T y) {
    return x == 0 ? T(0) : x * std::log(y);
  }
};

inline constexpr double kRootHalf = 0.70710678118654752440;
inline constexpr double kTwoRootTwoByPi = 1.59576912160573071176, kCubic = 0.044715;

TN_INLINE double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
TN_INLINE double approximate_argument(double x) {
  return x * (kTwoRootTwoByPi + kTwoRootTwoByPi * kCubic * x * x);
}

TN_INLINE double gelu_slope(double x) {
  const double density = 0.39894228040143267794 * std::exp(-0.5 * x * x);
  return 0.5 * std::erfc(-x * kRootHalf) + x * density;
}
TN_INLINE double approximate_gelu_slope(double x) {
  const double s = sigmoid(approximate_argument(x));
  const double slope = kTwoRootTwoByPi + 3 * kTwoRootTwoByPi * kCubic * x * x;
  return s + s * (1 - s) * x * slope;
}

struct Gelu {
  TN_INLINE static double apply(double x, bool approximate) {
    return approximate ? x * sigmoid(approximate_argument(x)) : 0.5 * x * std::erfc(-x * kRootHalf);
  }
};
struct GeluGrad {
  TN_INLINE static double apply(double g, double x, bool approximate) {
    return g * (approximate ? approximate_gelu_slope(x) : gelu_slope(x));
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::library

#define TN_LIBRARY_UNARY_OPS(ROW) \
  ROW(Expm1, Expm1, double, 12)   \
  ROW(Log1p, Log1p, double, 12)   \
  ROW(Sin, Sin, double, 10)       \
  ROW(Cos, Cos, double, 10)       \
  ROW(Tan, Tan, double, 15)       \
  ROW(Asin, Asin, float, 6)       \
  ROW(Asin, Asin, double, 12)     \
  ROW(Acos, Acos, float, 6)       \
  ROW(Acos, Acos, double, 12)     \
  ROW(Atan, Atan, float, 6)       \
  ROW(Atan, Atan, double, 12)     \
  ROW(Sinh, Sinh, double, 15)     \
  ROW(Cosh, Cosh, double, 12)     \
  ROW(Tanh, Tanh, double, 15)     \
  ROW(Asinh, Asinh, double, 20)   \
  ROW(Acosh, Acosh, double, 15)   \
  ROW(Atanh, Atanh, double, 15)   \
  ROW(Erf, Erf, double, 15)       \
  ROW(Erfc, Erfc, float, 10)      \
  ROW(Erfc, Erfc, double, 15)     \
  ROW(Elu, Elu, double, 12)       \
  ROW(Selu, Selu, double, 12)     \
  ROW(Softplus, Softplus, double, 18)
#define TN_LIBRARY_BINARY_OPS(ROW) \
  ROW(Pow, Power, double, 20)      \
  ROW(Atan2, Atan2, float, 10)     \
  ROW(Atan2, Atan2, double, 18)    \
  ROW(Xlogy, Xlogy, float, 5)      \
  ROW(Xlogy, Xlogy, double, 6)

// Attribute approximate is the last operand.
#define TN_LIBRARY_GELU_OPS(UNARY, BINARY) \
  UNARY(Gelu, Gelu, double, 20)            \
  BINARY(GeluGrad, GeluGrad, double, 25)

// Each side has its own definition.
#define TN_LIBRARY_LGAMMA_OPS(ROW) ROW(Lgamma, Lgamma, double, 25)
