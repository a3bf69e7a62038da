// SPDX-License-Identifier: Apache-2.0
// Functions of complex numbers, by the C++ library; and the parts of complex numbers. Arithmetic:
// elementwise.cc.
#include <cmath>
#include <complex>

#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

#define TREENAIL_FUNCTION(Name, expression)           \
  struct Name {                                       \
    template <class T>                                \
    static std::complex<T> apply(std::complex<T> x) { \
      return expression;                              \
    }                                                 \
  }
TREENAIL_FUNCTION(Neg, -x);
TREENAIL_FUNCTION(Reciprocal, T(1) / x);
TREENAIL_FUNCTION(Sign, (x == std::complex<T>() ? x : x / std::abs(x)));
TREENAIL_FUNCTION(Sqrt, std::sqrt(x));
TREENAIL_FUNCTION(Rsqrt, T(1) / std::sqrt(x));
TREENAIL_FUNCTION(Exp, std::exp(x));
TREENAIL_FUNCTION(Log, std::log(x));
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
TREENAIL_FUNCTION(Sigmoid, T(1) / (T(1) + std::exp(-x)));
TREENAIL_FUNCTION(Conj, std::conj(x));
#undef TREENAIL_FUNCTION

// e^(a + ib) - 1 = (e^a - 1) cos b - 2 sin²(b/2) + i e^a sin b.
struct Expm1 {
  template <class T>
  static std::complex<T> apply(std::complex<T> x) {
    const T a = x.real(), b = x.imag(), s = std::sin(b / 2);
    return {std::expm1(a) * std::cos(b) - 2 * s * s, std::exp(a) * std::sin(b)};
  }
};
// log|1 + z| = log1p(|z|² + 2 Re z) / 2 while that does not cancel.
struct Log1p {
  template <class T>
  static std::complex<T> apply(std::complex<T> x) {
    const T a = x.real(), b = x.imag();
    const bool small = std::abs(a) < T(0.5) && std::abs(b) < T(0.5);
    const T real =
        small ? T(0.5) * std::log1p(a * (a + 2) + b * b) : std::log(std::hypot(1 + a, b));
    return {real, std::atan2(b, 1 + a)};
  }
};

struct Power {
  template <class T>
  static T apply(T x, T y) {
    if (y == T{}) return T(1);
    if (x == T{} && y.real() > 0) return T{};
    return std::pow(x, y);
  }
};
struct Xlogy {
  template <class T>
  static T apply(T x, T y) {
    return x == T{} ? T{} : x * std::log(y);
  }
};
struct TanhGrad {
  template <class T>
  static T apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGrad {
  template <class T>
  static T apply(T y, T dy) {
    return dy * (y * (T(1) - y));
  }
};

struct Complex {
  template <class T>
  static std::complex<T> apply(T real, T imag) {
    return {real, imag};
  }
};
struct Real {
  template <class T>
  static T apply(std::complex<T> x) {
    return x.real();
  }
};
struct Imag {
  template <class T>
  static T apply(std::complex<T> x) {
    return x.imag();
  }
};
struct Angle {
  template <class T>
  static T apply(std::complex<T> x) {
    return std::arg(x);
  }
};
struct ComplexAbs {
  template <class T>
  static T apply(std::complex<T> x) {
    return std::abs(x);
  }
};

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kC = DType::kComplex64;
constexpr DType kZ = DType::kComplex128;

template <class Op>
void add_function(KernelRegistry& registry, const char* name, float ns) {
  const TileOp both[] = {{name, kC, each_unary<Op, C>(), ns},
                         {name, kZ, each_unary<Op, Z>(), 2 * ns}};
  add_tile_ops(registry, both);
}
template <class Op>
void add_binary(KernelRegistry& registry, const char* name, float ns) {
  const TileOp both[] = {{name, kC, each_binary<Op, C>(), ns},
                         {name, kZ, each_binary<Op, Z>(), 2 * ns}};
  add_tile_ops(registry, both);
}
template <class Op>
void add_part(KernelRegistry& registry, const char* name, float ns) {
  const TileOp both[] = {{name, kC, each_unary<Op, C, float>(), ns},
                         {name, kZ, each_unary<Op, Z, double>(), ns}};
  add_tile_ops(registry, both);
}

}  // namespace

void register_complex_functions_kernels(KernelRegistry& r) {
  add_function<Neg>(r, "Neg", 0.3f);
  add_function<Reciprocal>(r, "Reciprocal", 8);
  add_function<Sign>(r, "Sign", 15);
  add_function<Sqrt>(r, "Sqrt", 15);
  add_function<Rsqrt>(r, "Rsqrt", 20);
  add_function<Exp>(r, "Exp", 20);
  add_function<Expm1>(r, "Expm1", 30);
  add_function<Log>(r, "Log", 20);
  add_function<Log1p>(r, "Log1p", 30);
  add_function<Sin>(r, "Sin", 30);
  add_function<Cos>(r, "Cos", 30);
  add_function<Tan>(r, "Tan", 40);
  add_function<Asin>(r, "Asin", 60);
  add_function<Acos>(r, "Acos", 60);
  add_function<Atan>(r, "Atan", 40);
  add_function<Sinh>(r, "Sinh", 30);
  add_function<Cosh>(r, "Cosh", 30);
  add_function<Tanh>(r, "Tanh", 40);
  add_function<Asinh>(r, "Asinh", 60);
  add_function<Acosh>(r, "Acosh", 60);
  add_function<Atanh>(r, "Atanh", 40);
  add_function<Sigmoid>(r, "Sigmoid", 30);
  add_function<Conj>(r, "Conj", 0.3f);
  add_binary<Power>(r, "Pow", 60);
  add_binary<Xlogy>(r, "Xlogy", 20);
  add_binary<TanhGrad>(r, "TanhGrad", 3);
  add_binary<SigmoidGrad>(r, "SigmoidGrad", 3);
  add_part<Real>(r, "Real", 0.3f);
  add_part<Imag>(r, "Imag", 0.3f);
  add_part<Angle>(r, "Angle", 15);
  add_part<ComplexAbs>(r, "ComplexAbs", 5);
  const TileOp complex[] = {{"Complex", kF, each_binary<Complex, float, C>(), 0.4f},
                            {"Complex", kD, each_binary<Complex, double, Z>(), 0.5f}};
  add_tile_ops(r, complex);
}

}  // namespace treenail::host
