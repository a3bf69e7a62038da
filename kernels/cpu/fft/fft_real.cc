// SPDX-License-Identifier: Apache-2.0
// The step between the transform Z of n / 2 pairs of neighbours, taken as complex numbers, and the
// spectrum X of the n real numbers: frequencies k and n / 2 - k are made together.
#include "kernels/cpu/fft/fft_real.h"

#include <algorithm>

#include "kernels/cpu/fft/fft_butterflies.h"
#include "kernels/cpu/fft/fft_rows.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
namespace {

// Z[k] and Z[n/2 - k] become X[k] and X[n/2 - k]; w: e^(-2 pi i k / n).
template <class T>
TN_INLINE void to_spectrum(ComplexVec<T>& low, ComplexVec<T>& high, ComplexVec<T> w) {
  const ComplexVec<T> mirrored = conjugate<T>(high);
  const ComplexVec<T> even = scaled<T>(T(0.5), low + mirrored);
  const ComplexVec<T> odd = times<T>(scaled<T>(T(0.5), low - mirrored), w);
  low = minus_i<T>(even, odd);
  high = conjugate<T>(plus_i<T>(even, odd));
}

// The other way, twice as large.
template <class T>
TN_INLINE void from_spectrum(ComplexVec<T>& low, ComplexVec<T>& high, ComplexVec<T> w) {
  const ComplexVec<T> mirrored = conjugate<T>(high);
  const ComplexVec<T> even = low + mirrored;
  const ComplexVec<T> odd = times<T>(low - mirrored, conjugate<T>(w));
  low = plus_i<T>(even, odd);
  high = conjugate<T>(minus_i<T>(even, odd));
}

template <class T>
TN_INLINE ComplexVec<T> everywhere(T re, T im) {
  return {splat<Vec<T>>(re), splat<Vec<T>>(im)};
}

}  // namespace

template <class T>
RealFft<T>::RealFft(int64_t lines, int64_t n)
    : lines_(lines),
      n_(n),
      even_(n % 2 == 0),
      half_(n / 2),
      way_(fft_way(lines, even_ ? n / 2 : n)),
      roots_(n) {
  const int64_t length = even_ ? half_ : n;
  if (way_ == FftWay::kLanes) {
    lanes_ = LaneFft<T>::of(length);
    for (int64_t k = 0; k <= half_ / 2; ++k) {
      const Root root = unit_root(k, n);
      twiddles_.push_back(static_cast<T>(root.re));
      twiddles_.push_back(static_cast<T>(root.im));
    }
    per_chunk_ = static_cast<size_t>(2 * std::max(lanes_->rows(), half_ + 1) * kRow<T>) * sizeof(T);
    most_chunks_ = Workspaces::kMost;
  } else {
    line_ = std::make_unique<LineFft<T>>(length, way_ == FftWay::kOneLine);
    copy_bytes_ = (static_cast<size_t>(2 * length) * sizeof(T) + 63) / 64 * 64;
    per_chunk_ = copy_bytes_ + line_->scratch_bytes();
    most_chunks_ = way_ == FftWay::kLines ? kMostLineChunks : 1;
  }
  scratch_bytes_ = static_cast<size_t>(most_chunks_) * per_chunk_;
}

template <class T>
double RealFft<T>::cost_ns() const {
  return static_cast<double>(lines_) * fft_cost_ns(even_ ? half_ : n_);
}

template <class T>
template <class F>
void RealFft<T>::each_block(const RunContext& c, std::byte* scratch, F&& body) const {
  constexpr int64_t lanes = kRowLanes<T>;
  const FftCut cut((lines_ + lanes - 1) / lanes, most_chunks_);
  Workspaces free;
  c.run_chunks(cut.chunks, cost_ns(), [&](int64_t chunk) {
    const Workspaces::Use use(free);
    T* const a = numbers_at<T>(scratch + use.index() * per_chunk_);
    T* const b = numbers_at<T>(scratch + use.index() * per_chunk_ + per_chunk_ / 2);
    cut.each(chunk, [&](int64_t block) {
      body(block * lanes, std::min(lanes, lines_ - block * lanes), a, b);
    });
  });
}

template <class T>
template <class F>
void RealFft<T>::each_line(const RunContext& c, std::byte* scratch, F&& body) const {
  if (way_ == FftWay::kOneLine) {
    for (int64_t line = 0; line < lines_; ++line) body(FftChunks(c), line, scratch);
    return;
  }
  const FftCut cut(lines_, most_chunks_);
  c.run_chunks(cut.chunks, cost_ns(), [&](int64_t chunk) {
    cut.each(chunk, [&](int64_t line) { body(FftChunks(), line, scratch + chunk * per_chunk_); });
  });
}

template <class T>
void RealFft<T>::forward(const RunContext& c, const T* real, T* spectrum,
                         std::byte* scratch) const {
  const int64_t width = 2 * (half_ + 1);
  if (way_ == FftWay::kLanes) {
    each_block(c, scratch, [&](int64_t first, int64_t here, T* a, T* b) {
      forward_block(real + first * n_, spectrum + first * width, here, a, b);
    });
  } else {
    each_line(c, scratch, [&](const FftChunks& chunks, int64_t line, std::byte* space) {
      forward_line(chunks, real + line * n_, spectrum + line * width, space);
    });
  }
}

template <class T>
void RealFft<T>::backward(const RunContext& c, const T* spectrum, T* real, T scale,
                          std::byte* scratch) const {
  const int64_t width = 2 * (half_ + 1);
  if (way_ == FftWay::kLanes) {
    each_block(c, scratch, [&](int64_t first, int64_t here, T* a, T* b) {
      backward_block(spectrum + first * width, real + first * n_, here, scale, a, b);
    });
  } else {
    each_line(c, scratch, [&](const FftChunks& chunks, int64_t line, std::byte* space) {
      backward_line(chunks, spectrum + line * width, real + line * n_, scale, space);
    });
  }
}

template <class T>
void RealFft<T>::forward_block(const T* real, T* spectrum, int64_t lanes, T* a, T* b) const {
  constexpr int64_t row = kRow<T>, imaginary = kRowLanes<T>;
  const int64_t width = 2 * (half_ + 1);
  if (!even_) {
    gather_lines<T>(real, n_, n_, lanes, [&](int64_t i) { return a + i * row; });
    for (int64_t j = 0; j < n_; ++j) std::fill_n(a + j * row + imaginary, imaginary, T(0));
    T* const x = lanes_->run(a, b);
    scatter_lines<T>([&](int64_t i) { return x + i / 2 * row + i % 2 * imaginary; }, width, width,
                     lanes, T(1), spectrum);
    return;
  }
  gather_lines<T>(real, n_, n_, lanes,
                  [&](int64_t i) { return a + i / 2 * row + i % 2 * imaginary; });
  const T* const z = lanes_->run(a, b);
  T* const x = z == a ? b : a;
  for (int part = 0; part < kRowParts<T>; ++part) {
    const ComplexVec<T> first = load_row<T>(z, part);
    store_row<T>(x, part, {first.re + first.im, Vec<T>{}});
    store_row<T>(x + half_ * row, part, {first.re - first.im, Vec<T>{}});
    for (int64_t k = 1; k <= half_ / 2; ++k) {
      ComplexVec<T> low = load_row<T>(z + k * row, part);
      ComplexVec<T> high = load_row<T>(z + (half_ - k) * row, part);
      to_spectrum<T>(low, high, everywhere<T>(twiddles_[2 * k], twiddles_[2 * k + 1]));
      store_row<T>(x + k * row, part, low);
      store_row<T>(x + (half_ - k) * row, part, high);
    }
  }
  scatter_lines<T>([&](int64_t i) { return x + i / 2 * row + i % 2 * imaginary; }, width, width,
                   lanes, T(1), spectrum);
}

// The inverse transform is the forward one with real and imaginary parts exchanged before and
// after.
template <class T>
void RealFft<T>::backward_block(const T* spectrum, T* real, int64_t lanes, T scale, T* a,
                                T* b) const {
  constexpr int64_t row = kRow<T>, imaginary = kRowLanes<T>;
  const int64_t width = 2 * (half_ + 1);
  gather_lines<T>(spectrum, width, width, lanes,
                  [&](int64_t i) { return b + i / 2 * row + i % 2 * imaginary; });
  for (int part = 0; part < kRowParts<T>; ++part) {
    const ComplexVec<T> first = load_row<T>(b, part);
    if (even_) {
      const ComplexVec<T> last = load_row<T>(b + half_ * row, part);
      store_row<T>(a, part, {first.re - last.re, first.re + last.re});
    } else {
      store_row<T>(a, part, {Vec<T>{}, first.re});
    }
    for (int64_t k = 1; k <= (even_ ? half_ / 2 : half_); ++k) {
      ComplexVec<T> low = load_row<T>(b + k * row, part), high = conjugate<T>(low);
      if (even_) {
        high = load_row<T>(b + (half_ - k) * row, part);
        from_spectrum<T>(low, high, everywhere<T>(twiddles_[2 * k], twiddles_[2 * k + 1]));
      }
      store_row<T>(a + k * row, part, exchanged_if<T>(true, low));
      store_row<T>(a + ((even_ ? half_ : n_) - k) * row, part, exchanged_if<T>(true, high));
    }
  }
  T* const x = lanes_->run(a, b);
  scatter_lines<T>(
      [&](int64_t i) {
        return even_ ? x + i / 2 * row + (1 - i % 2) * imaginary : x + i * row + imaginary;
      },
      n_, n_, lanes, scale, real);
}

namespace {

// step(low, high, w) for the pairs 0 < k <= half / 2 of a line: whole vectors first, then one by
// one.
template <class T, class Step>
void each_pair(const FftChunks& chunks, const RootTable& roots, int64_t half, const T* from, T* to,
               Step&& step) {
  constexpr int n = kLanes<T>;
  Vec<T> lane_re, lane_im;
  for (int l = 0; l < n; ++l) {
    const Root root = unit_root(l % roots.order(), roots.order());
    lane_re[l] = static_cast<T>(root.re);
    lane_im[l] = static_cast<T>(root.im);
  }
  // Whole vectors while the two sides do not meet.
  const int64_t vectors = std::max<int64_t>(0, (half - 1) / 2 / n);
  const FftCut cut(vectors, std::max<int64_t>(1, std::min<int64_t>(64, vectors / 512)));
  chunks(cut.chunks, static_cast<double>(half), [&](int64_t chunk) {
    cut.each(chunk, [&](int64_t vector) {
      const int64_t k = 1 + vector * n, mirror = half - k - n + 1;
      const Root root = roots(k);
      const ComplexVec<T> w = times<T>(
          {lane_re, lane_im}, everywhere<T>(static_cast<T>(root.re), static_cast<T>(root.im)));
      ComplexVec<T> low = load_complex<T>(from + 2 * k);
      ComplexVec<T> high = backwards<T>(load_complex<T>(from + 2 * mirror));
      step(low, high, w);
      store_complex<T>(to + 2 * k, low);
      store_complex<T>(to + 2 * mirror, backwards<T>(high));
    });
  });
  for (int64_t k = 1 + vectors * n; k <= half / 2; ++k) {
    const Root root = roots(k);
    const int64_t mirror = half - k;
    ComplexVec<T> low = everywhere<T>(from[2 * k], from[2 * k + 1]);
    ComplexVec<T> high = everywhere<T>(from[2 * mirror], from[2 * mirror + 1]);
    step(low, high, everywhere<T>(static_cast<T>(root.re), static_cast<T>(root.im)));
    to[2 * k] = low.re[0];
    to[2 * k + 1] = low.im[0];
    to[2 * mirror] = high.re[0];
    to[2 * mirror + 1] = high.im[0];
  }
}

}  // namespace

template <class T>
void RealFft<T>::forward_line(const FftChunks& chunks, const T* real, T* spectrum,
                              std::byte* scratch) const {
  T* const copy = numbers_at<T>(scratch);
  std::byte* const rest = scratch + copy_bytes_;
  if (!even_) {
    for (int64_t j = 0; j < n_; ++j) {
      copy[2 * j] = real[j];
      copy[2 * j + 1] = 0;
    }
    line_->run(chunks, copy, copy, false, T(1), rest);
    std::copy_n(copy, 2 * (half_ + 1), spectrum);
    return;
  }
  line_->run(chunks, real, spectrum, false, T(1), rest);
  const T re = spectrum[0], im = spectrum[1];
  each_pair<T>(chunks, roots_, half_, spectrum, spectrum,
               [](auto& low, auto& high, auto w) { to_spectrum<T>(low, high, w); });
  spectrum[0] = re + im;
  spectrum[2 * half_] = re - im;
  spectrum[1] = spectrum[2 * half_ + 1] = 0;
}

template <class T>
void RealFft<T>::backward_line(const FftChunks& chunks, const T* spectrum, T* real, T scale,
                               std::byte* scratch) const {
  T* const copy = numbers_at<T>(scratch);
  std::byte* const rest = scratch + copy_bytes_;
  if (!even_) {
    copy[0] = spectrum[0];
    copy[1] = 0;
    for (int64_t k = 1; k <= half_; ++k) {
      copy[2 * k] = copy[2 * (n_ - k)] = spectrum[2 * k];
      copy[2 * k + 1] = spectrum[2 * k + 1];
      copy[2 * (n_ - k) + 1] = -spectrum[2 * k + 1];
    }
    line_->run(chunks, copy, copy, true, scale, rest);
    for (int64_t j = 0; j < n_; ++j) real[j] = copy[2 * j];
    return;
  }
  copy[0] = spectrum[0] + spectrum[2 * half_];
  copy[1] = spectrum[0] - spectrum[2 * half_];
  each_pair<T>(chunks, roots_, half_, spectrum, copy,
               [](auto& low, auto& high, auto w) { from_spectrum<T>(low, high, w); });
  line_->run(chunks, copy, real, true, scale, rest);
}

template class RealFft<float>;
template class RealFft<double>;

}  // namespace treenail::cpu
