// SPDX-License-Identifier: Apache-2.0
// The plain transform, axis by axis, in a wider type and rounded once: powers of two by halving
// (Cooley and Tukey, 1965), other lengths as a convolution (Bluestein, 1970).
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "tests/cuda_sim/fft/plan.h"

namespace treenail::cuda_sim {
namespace {

template <class W>
using Points = std::vector<std::complex<W>>;

// std::complex's asks for infinities each time.
template <class W>
std::complex<W> times(std::complex<W> a, std::complex<W> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// e^(2 pi i k / n)
template <class W>
std::complex<W> root(int64_t k, int64_t n) {
  const W angle = 2 * std::numbers::pi_v<W> * static_cast<W>(k) / static_cast<W>(n);
  return {std::cos(angle), std::sin(angle)};
}

template <class W>
class PowerOfTwo {
 public:
  PowerOfTwo(int64_t n, int sign) : n_(static_cast<size_t>(n)) {
    for (int64_t k = 0; k < n / 2; ++k) roots_.push_back(root<W>(sign * k, n));
  }
  void run(Points<W>& x) const {
    swap_bits(x);
    for (size_t half = 1; half < n_; half *= 2) {
      const size_t step = n_ / (2 * half);
      for (size_t first = 0; first < n_; first += 2 * half) {
        for (size_t k = 0; k < half; ++k) {
          std::complex<W>&a = x[first + k], &b = x[first + k + half];
          const std::complex<W> turned = times(b, roots_[k * step]);
          b = a - turned;
          a += turned;
        }
      }
    }
  }

 private:
  void swap_bits(Points<W>& x) const {
    for (size_t i = 1, j = 0; i < n_; ++i) {
      size_t bit = n_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
  }
  size_t n_;
  Points<W> roots_;
};

// Of any length n: 2 j k = j^2 + k^2 - (k - j)^2.
template <class W>
class AnyLength {
 public:
  AnyLength(int64_t n, int sign)
      : n_(static_cast<size_t>(n)),
        wide_(static_cast<size_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)))),
        forward_(static_cast<int64_t>(wide_), -1),
        back_(static_cast<int64_t>(wide_), 1),
        kernel_(wide_) {
    for (int64_t k = 0; k < n; ++k) chirp_.push_back(root<W>(sign * (k * k % (2 * n)), 2 * n));
    for (size_t k = 0; k < n_; ++k) kernel_[k] = kernel_[(wide_ - k) % wide_] = conj(chirp_[k]);
    forward_.run(kernel_);
  }
  void run(Points<W>& x) const {
    Points<W> y(wide_);
    for (size_t k = 0; k < n_; ++k) y[k] = times(x[k], chirp_[k]);
    forward_.run(y);
    for (size_t k = 0; k < wide_; ++k) y[k] = times(y[k], kernel_[k]);
    back_.run(y);
    for (size_t k = 0; k < n_; ++k) x[k] = times(y[k], chirp_[k]) / static_cast<W>(wide_);
  }

 private:
  size_t n_, wide_;
  PowerOfTwo<W> forward_, back_;
  Points<W> chirp_, kernel_;
};

// All lines of an array [outer, n, inner].
template <class W, class Line>
void run_lines(Points<W>& x, size_t outer, size_t n, size_t inner, const Line& line) {
  Points<W> one(n);
  for (size_t i = 0; i < outer * inner; ++i) {
    const size_t first = i / inner * n * inner + i % inner;
    for (size_t k = 0; k < n; ++k) one[k] = x[first + k * inner];
    line.run(one);
    for (size_t k = 0; k < n; ++k) x[first + k * inner] = one[k];
  }
}

template <class W>
void run_axes(Points<W>& x, const Transform& transform) {
  size_t inner = 1;
  for (size_t axis = transform.extents.size(); axis-- > 0;) {
    const int64_t n = transform.extents[axis];
    const auto size = static_cast<size_t>(n);
    const size_t outer = x.size() / size / inner;
    const int sign = transform.direction;  // CUFFT_FORWARD is -1, CUFFT_INVERSE 1
    if (std::has_single_bit(size)) {
      run_lines(x, outer, size, inner, PowerOfTwo<W>(n, sign));
    } else {
      run_lines(x, outer, size, inner, AnyLength<W>(n, sign));
    }
    inner *= size;
  }
}

// The frequency opposite to one: all places mirrored.
int64_t opposite(const Transform& transform, int64_t place) {
  int64_t result = 0, step = 1;
  for (size_t axis = transform.extents.size(); axis-- > 0;) {
    const int64_t n = transform.extents[axis], at = place % n;
    result += (at == 0 ? 0 : n - at) * step;
    step *= n;
    place /= n;
  }
  return result;
}

// All of a spectrum of which half is stored. What the vendor leaves open becomes NaN: what no real
// signal has.
template <class W, class T>
void read_half(const Transform& transform, const T* from, Points<W>& x) {
  const int64_t n = transform.extents.back(), half = n / 2 + 1;
  const auto stored = [&](int64_t place) {
    const T* const at = from + 2 * (place / n * half + place % n);
    return std::complex<W>(at[0], at[1]);
  };
  for (int64_t place = 0; place < transform.points(); ++place) {
    const int64_t other = opposite(transform, place);
    const bool here = place % n < half, there = other % n < half;
    std::complex<W> value = here ? stored(place) : conj(stored(other));
    if (here && there && value != conj(stored(other))) value = std::numeric_limits<W>::quiet_NaN();
    x[static_cast<size_t>(place)] = value;
  }
}

template <class W, class T>
void read(const Transform& transform, const T* from, Points<W>& x) {
  if (transform.to_real()) return read_half(transform, from, x);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = transform.from_real() ? std::complex<W>(from[i])
                                 : std::complex<W>(from[2 * i], from[2 * i + 1]);
}

template <class W, class T>
void write(const Transform& transform, const Points<W>& x, T* to) {
  const auto n = static_cast<size_t>(transform.extents.back());
  const size_t kept = transform.from_real() ? n / 2 + 1 : n;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % n >= kept) continue;
    *to++ = static_cast<T>(x[i].real());
    if (!transform.to_real()) *to++ = static_cast<T>(x[i].imag());
  }
}

template <class W, class T>
void compute_in(const Transform& transform, const T* from, T* to) {
  const int64_t spectrum = 2 * transform.spectrum(), real = transform.points();
  for (int64_t i = 0; i < transform.batch; ++i) {
    Points<W> x(static_cast<size_t>(transform.points()));
    read(transform, from + i * (transform.from_real() ? real : spectrum), x);
    run_axes(x, transform);
    write(transform, x, to + i * (transform.to_real() ? real : spectrum));
  }
}

}  // namespace

void compute(const Transform& transform, const void* from, void* to) {
  if (transform.is_double())
    return compute_in<long double>(transform, static_cast<const double*>(from),
                                   static_cast<double*>(to));
  compute_in<double>(transform, static_cast<const float*>(from), static_cast<float*>(to));
}

}  // namespace treenail::cuda_sim
