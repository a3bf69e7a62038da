// SPDX-License-Identifier: Apache-2.0
// Fourier transforms between lines of real numbers and the non-negative half of their spectrum. An
// even length is a complex transform of half of it and one more step, an odd one a complex
// transform of its own length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/fft/fft_axis.h"

namespace treenail::cpu {

// Lines of n real numbers and of n / 2 + 1 complex ones.
template <class T>
class RealFft {
 public:
  RealFft(int64_t lines, int64_t n);
  size_t scratch_bytes() const { return scratch_bytes_; }
  double cost_ns() const;
  void forward(const RunContext& c, const T* real, T* spectrum, std::byte* scratch) const;
  // scale * sum over all n frequencies; the imaginary parts of the first and (n even) the last one
  // count for nothing. `spectrum` is left as it is.
  void backward(const RunContext& c, const T* spectrum, T* real, T scale, std::byte* scratch) const;

 private:
  template <class F>
  void each_block(const RunContext& c, std::byte* scratch, F&& body) const;
  template <class F>
  void each_line(const RunContext& c, std::byte* scratch, F&& body) const;
  void forward_block(const T* real, T* spectrum, int64_t lanes, T* a, T* b) const;
  void backward_block(const T* spectrum, T* real, int64_t lanes, T scale, T* a, T* b) const;
  void forward_line(const FftChunks& chunks, const T* real, T* spectrum, std::byte* scratch) const;
  void backward_line(const FftChunks& chunks, const T* spectrum, T* real, T scale,
                     std::byte* scratch) const;

  int64_t lines_, n_;
  bool even_;
  int64_t half_;  // n / 2
  FftWay way_;
  RootTable roots_;
  std::vector<T> twiddles_;  // kLanes, even: e^(-2 pi i k / n) for k <= n / 4
  std::shared_ptr<const LaneFft<T>> lanes_;
  std::unique_ptr<const LineFft<T>> line_;
  size_t per_chunk_ = 0, copy_bytes_ = 0, scratch_bytes_ = 0;
  int64_t most_chunks_ = 1;
};

}  // namespace treenail::cpu
