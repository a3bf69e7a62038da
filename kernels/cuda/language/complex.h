// SPDX-License-Identifier: Apache-2.0
// Complex numbers as they lie in memory, for device code, which cannot call std::complex.
#pragma once

#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
};

template <class T>
TN_DEVICE bool operator==(Complex<T> a, Complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
TN_DEVICE Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
TN_DEVICE Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
TN_DEVICE Complex<T> operator-(Complex<T> a) {
  return {-a.re, -a.im};
}
template <class T>
TN_DEVICE Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

}  // namespace treenail::gpu
