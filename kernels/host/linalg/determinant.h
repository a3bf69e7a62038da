// SPDX-License-Identifier: Apache-2.0
// The product of pivots, with an exponent of its own: it leaves the range of numbers only where the
// result does.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

namespace treenail::host {

// W: double or complex<double>.
template <class W>
class ScaledProduct {
 public:
  void multiply(W factor) {
    int exponent = 0;
    mantissa_ = normal(mantissa_ * normal(factor, &exponent), &exponent);
    exponent_ += exponent;
  }
  void negate() { mantissa_ = -mantissa_; }

  W value() const {
    const auto exponent = static_cast<int>(std::clamp<int64_t>(exponent_, -5000, 5000));
    return scaled(mantissa_, exponent);
  }
  // 0 where the product is, else of absolute value 1.
  W sign() const { return mantissa_ == W(0) ? W(0) : mantissa_ / std::abs(mantissa_); }
  double log_abs() const {
    // Near 1, so that the two terms never cancel.
    double size = std::abs(mantissa_);
    int64_t exponent = exponent_;
    if (size < 0.70710678118654752 && size > 0) {
      size *= 2;
      --exponent;
    }
    constexpr double kLog2 = 0.69314718055994531;
    return size == 0 ? std::log(size) : std::log(size) + static_cast<double>(exponent) * kLog2;
  }

 private:
  static double scaled(double x, int exponent) { return std::ldexp(x, exponent); }
  static std::complex<double> scaled(std::complex<double> x, int exponent) {
    return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
  }
  // x with its largest part in [0.5, 1), and its exponent added.
  static double normal(double x, int* exponent) {
    int own = 0;
    const double mantissa = std::frexp(x, &own);
    *exponent += own;
    return mantissa;
  }
  static std::complex<double> normal(std::complex<double> x, int* exponent) {
    int own = 0;
    std::frexp(std::max(std::abs(x.real()), std::abs(x.imag())), &own);
    *exponent += own;
    return scaled(x, -own);
  }

  W mantissa_ = W(1);
  int64_t exponent_ = 0;
};

}  // namespace treenail::host
