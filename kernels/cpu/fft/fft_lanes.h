// SPDX-License-Identifier: Apache-2.0
// The Fourier transform of kRowLanes sequences side by side (fft_rows.h): Stockham's algorithm,
// which needs no bit reversal, with radices 2, 3, 4, 5, 8 and odd primes up to 31 (Stockham 1966;
// Van Loan, Computational Frameworks for the FFT, 1992); lengths with a larger prime factor become
// a longer cyclic convolution (Bluestein 1970).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace treenail::cpu {

inline constexpr int64_t kLargestRadix = 31;

// Whether n has no prime factor above kLargestRadix.
bool is_smooth(int64_t n);

// The length of a cyclic convolution by which a transform of length n is computed: the smallest
// product of a power of two and 1, 3, 5, 9 or 15 that is at least 2 n - 1.
int64_t convolution_length(int64_t n);

template <class T>
class LaneFft {
 public:
  explicit LaneFft(int64_t n);
  // The transform of this length: made once and shared while it is among those used lately.
  static std::shared_ptr<const LaneFft> of(int64_t n);

  int64_t size() const { return n_; }
  // Each of the two buffers of run() holds so many rows.
  int64_t rows() const { return convolution_ ? convolution_->size() : n_; }
  // sum over j of x[j] e^(-2 pi i j k / n) for the n rows in `a`; gives the buffer the result is
  // in. Both are overwritten.
  T* run(T* a, T* b) const;
  // Memory of the tables, in bytes.
  int64_t bytes() const;

 private:
  struct Pass {
    int radix;
    int64_t count;  // butterflies with twiddle factors of their own
    int64_t width;  // rows next to each other that share them
    int64_t twiddles;
  };
  void plan();
  void plan_bluestein();
  T* run_bluestein(T* a, T* b) const;

  int64_t n_;
  std::vector<Pass> passes_;
  std::vector<T> twiddles_;
  // Bluestein: the transform of the convolution, the chirp (n complex numbers), the chirp's
  // transform divided by its length.
  std::shared_ptr<const LaneFft> convolution_;
  std::vector<T> chirp_, spectrum_;
};

}  // namespace treenail::cpu
