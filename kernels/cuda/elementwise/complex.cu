// SPDX-License-Identifier: Apache-2.0
// Arithmetic of complex numbers, and their parts.
#include <cmath>

#include "kernels/cuda/elementwise/complex_ops.h"
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/complex.h"

namespace treenail::gpu {

TN_DEVICE Complex<float> finite_quotient(Complex<float> a, Complex<float> b) {
  const double x = a.re, y = a.im, c = b.re, d = b.im, size = c * c + d * d;
  return {static_cast<float>((x * c + y * d) / size), static_cast<float>((y * c - x * d) / size)};
}
// With the divisor's exponent taken out, so that no square overflows.
TN_DEVICE Complex<double> finite_quotient(Complex<double> a, Complex<double> b) {
  const double most = std::fmax(std::abs(b.re), std::abs(b.im));
  const int exponent = most > 0 && std::isfinite(most) ? std::ilogb(most) : 0;
  const double c = std::scalbn(b.re, -exponent), d = std::scalbn(b.im, -exponent);
  const double size = c * c + d * d;
  return {std::scalbn((a.re * c + a.im * d) / size, -exponent),
          std::scalbn((a.im * c - a.re * d) / size, -exponent)};
}

template <class T>
TN_DEVICE T one_if_infinite(T x) {
  return std::copysign(std::isinf(x) ? T(1) : T(0), x);
}

// By 0 the result is infinite, by infinity 0, as C's Annex G has it.
template <class T>
TN_DEVICE Complex<T> quotient(Complex<T> a, Complex<T> b) {
  const Complex<T> q = finite_quotient(a, b);
  if (!(std::isnan(q.re) && std::isnan(q.im))) return q;
  const T infinity = T(INFINITY);
  if (b.re == 0 && b.im == 0 && !(std::isnan(a.re) && std::isnan(a.im))) {
    const T sign = std::copysign(infinity, b.re);
    return {sign * a.re, sign * a.im};
  }
  const bool a_infinite = std::isinf(a.re) || std::isinf(a.im);
  const bool b_infinite = std::isinf(b.re) || std::isinf(b.im);
  const bool b_finite = std::isfinite(b.re) && std::isfinite(b.im);
  if (a_infinite && b_finite) {
    const T x = one_if_infinite(a.re), y = one_if_infinite(a.im);
    return {infinity * (x * b.re + y * b.im), infinity * (y * b.re - x * b.im)};
  }
  if (b_infinite && std::isfinite(a.re) && std::isfinite(a.im)) {
    const T c = one_if_infinite(b.re), d = one_if_infinite(b.im);
    return {T(0) * (a.re * c + a.im * d), T(0) * (a.im * c - a.re * d)};
  }
  return q;
}

namespace complex {

#define TN_COMPLEX_FUNCTION(Name, ...)          \
  struct Name {                                 \
    template <class T>                          \
    TN_DEVICE static auto apply(Complex<T> x) { \
      return __VA_ARGS__;                       \
    }                                           \
  }
TN_COMPLEX_FUNCTION(Neg, -x);
TN_COMPLEX_FUNCTION(Conj, Complex<T>{x.re, -x.im});
TN_COMPLEX_FUNCTION(Square, x* x);
TN_COMPLEX_FUNCTION(Reciprocal, quotient(Complex<T>{T(1), T(0)}, x));
TN_COMPLEX_FUNCTION(Real, x.re);
TN_COMPLEX_FUNCTION(Imag, x.im);
TN_COMPLEX_FUNCTION(ComplexAbs, std::hypot(x.re, x.im));
TN_COMPLEX_FUNCTION(Angle, std::atan2(x.im, x.re));
#undef TN_COMPLEX_FUNCTION

#define TN_COMPLEX_OPERATION(Name, ...)                       \
  struct Name {                                               \
    template <class T>                                        \
    TN_DEVICE static auto apply(Complex<T> a, Complex<T> b) { \
      return __VA_ARGS__;                                     \
    }                                                         \
  }
TN_COMPLEX_OPERATION(Add, a + b);
TN_COMPLEX_OPERATION(Sub, a - b);
TN_COMPLEX_OPERATION(Mul, a* b);
TN_COMPLEX_OPERATION(Div, quotient(a, b));
TN_COMPLEX_OPERATION(RealDiv, quotient(a, b));
TN_COMPLEX_OPERATION(DivNoNan, b == Complex<T>{} ? Complex<T>{} : quotient(a, b));
TN_COMPLEX_OPERATION(MulNoNan, b == Complex<T>{} ? Complex<T>{} : a * b);
TN_COMPLEX_OPERATION(Equal, a == b);
TN_COMPLEX_OPERATION(NotEqual, !(a == b));
#undef TN_COMPLEX_OPERATION

struct FromParts {
  template <class T>
  TN_DEVICE static Complex<T> apply(T re, T im) {
    return {re, im};
  }
};

}  // namespace complex

#define TN_OF_BOTH(DEFINE, op, Op, Float, Double)           \
  DEFINE(Complex<float>, complex64, op, complex::Op, Float) \
  DEFINE(Complex<double>, complex128, op, complex::Op, Double)
#define TN_COMPLEX_BINARY(op) TN_OF_BOTH(TN_DEFINE_BINARY, op, op, Complex<float>, Complex<double>)
#define TN_COMPLEX_UNARY(op) TN_OF_BOTH(TN_DEFINE_UNARY, op, op, Complex<float>, Complex<double>)
#define TN_COMPLEX_PART(op) TN_OF_BOTH(TN_DEFINE_UNARY, op, op, float, double)
#define TN_COMPLEX_QUESTION(op) TN_OF_BOTH(TN_DEFINE_BINARY, op, op, bool, bool)

TN_COMPLEX_BINARY_OPS(TN_COMPLEX_BINARY)
TN_COMPLEX_UNARY_OPS(TN_COMPLEX_UNARY)
TN_COMPLEX_PART_OPS(TN_COMPLEX_PART)
TN_COMPLEX_QUESTION_OPS(TN_COMPLEX_QUESTION)
TN_DEFINE_BINARY(float, float32, Complex, complex::FromParts, Complex<float>)
TN_DEFINE_BINARY(double, float64, Complex, complex::FromParts, Complex<double>)

}  // namespace treenail::gpu
