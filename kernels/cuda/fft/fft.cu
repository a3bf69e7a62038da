// SPDX-License-Identifier: Apache-2.0
// What is done to numbers before and after cuFFT's transforms: boxes fitted, spectra of real
// signals made whole, results normalised. Each is one pass over memory.
#include "kernels/cuda/fft/fft_space.h"
#include "kernels/cuda/language/complex.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

struct BoxPlace {
  int64_t batch, at[3];
};

TN_DEVICE BoxPlace place_of(const FftSpace& s, int64_t i) {
  BoxPlace p = {};
  for (int axis = 2; axis >= 0; --axis) {
    const int64_t rest = i / s.wanted[axis];
    p.at[axis] = i - rest * s.wanted[axis];
    i = rest;
  }
  p.batch = i;
  return p;
}

TN_DEVICE int64_t elements(const FftSpace& s) {
  return s.batch * s.wanted[0] * s.wanted[1] * s.wanted[2];
}

// Zero beyond what is given.
template <class T>
TN_DEVICE T element_at(const FftSpace& s, const T* from, const BoxPlace& p) {
  int64_t place = p.batch;
  for (int axis = 0; axis < 3; ++axis) {
    if (p.at[axis] >= s.given[axis]) return T();
    place = place * s.given[axis] + p.at[axis];
  }
  return from[place];
}

template <class T>
TN_DEVICE void fit(const FftSpace& s, const T* from, T* to) {
  for (int64_t i = first(); i < elements(s); i += stride())
    to[i] = element_at(s, from, place_of(s, i));
}

TN_DEVICE int64_t opposite(int64_t at, int64_t extent) { return at == 0 ? 0 : extent - at; }

// cuFFT leaves open what becomes of a spectrum that no real signal has: what makes none is taken
// out. That can be in the first column and, `even`, in the last one, which are their own opposites.
template <class T>
TN_DEVICE Complex<T> of_real_signal(const FftSpace& s, int even, const Complex<T>* from,
                                    const BoxPlace& p) {
  const Complex<T> x = element_at(s, from, p);
  if (p.at[2] != 0 && !(even != 0 && p.at[2] == s.wanted[2] - 1)) return x;
  const BoxPlace other = {
      p.batch, {opposite(p.at[0], s.wanted[0]), opposite(p.at[1], s.wanted[1]), p.at[2]}};
  if (other.at[0] == p.at[0] && other.at[1] == p.at[1]) return {x.re, T(0)};
  const Complex<T> y = element_at(s, from, other);
  return {T(0.5) * x.re + T(0.5) * y.re, T(0.5) * x.im - T(0.5) * y.im};
}

template <class T>
TN_DEVICE void spectrum(const FftSpace& s, int even, double factor, const Complex<T>* from,
                        Complex<T>* to) {
  const T scale = static_cast<T>(factor);
  for (int64_t i = first(); i < elements(s); i += stride()) {
    const Complex<T> x = of_real_signal(s, even, from, place_of(s, i));
    to[i] = {x.re * scale, x.im * scale};
  }
}

template <class T>
TN_DEVICE void scale(int64_t n, double factor, T* x) {
  const T by = static_cast<T>(factor);
  for (int64_t i = first(); i < n; i += stride()) x[i] *= by;
}

#define TN_FFT(T)                                                                          \
  TN_KERNEL(fft_fit_##T, FftSpace s, const T* from, T* to) { fit(s, from, to); }           \
  TN_KERNEL(fft_spectrum_##T, FftSpace s, int even, double factor, const Complex<T>* from, \
            Complex<T>* to) {                                                              \
    spectrum(s, even, factor, from, to);                                                   \
  }                                                                                        \
  TN_KERNEL(fft_scale_##T, int64_t n, double factor, Complex<T>* x) {                      \
    scale(2 * n, factor, &x->re);                                                          \
  }
TN_FFT(float)
TN_FFT(double)

}  // namespace treenail::gpu
