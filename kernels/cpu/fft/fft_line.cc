// SPDX-License-Identifier: Apache-2.0
// The two sweeps of a long transform, and Bluestein's convolution for awkward lengths. Between the
// sweeps the numbers lie in blocks of kRowLanes rows, as the second sweep wants them.
#include "kernels/cpu/fft/fft_line.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/fft/fft_rows.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The largest divisor of a smooth n that is at most its square root.
int64_t lower_factor(int64_t n) {
  int64_t best = 1;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d == 0) best = d;
  }
  return best;
}

template <class T>
int64_t row_blocks(int64_t rows) {
  return (rows + kRowLanes<T> - 1) / kRowLanes<T>;
}

}  // namespace

double fft_cost_ns(int64_t n) {
  const auto count = static_cast<double>(n);
  return 0.4 * count * std::log2(count + 1);
}

template <class T>
LineFft<T>::LineFft(int64_t n, bool parallel) : n_(n), roots_(n) {
  if (!is_smooth(n)) {
    plan_bluestein(parallel);
    return;
  }
  n1_ = lower_factor(n);
  n2_ = n / n1_;
  first_ = LaneFft<T>::of(n1_);
  second_ = LaneFft<T>::of(n2_);
  lane_twiddles_.resize(static_cast<size_t>(n1_) * kRow<T>);
  for (int64_t k = 0; k < n1_; ++k) {
    for (int64_t l = 0; l < kRowLanes<T>; ++l) {
      const Root root = unit_root(k * l % n_, n_);
      lane_twiddles_[k * kRow<T> + l] = static_cast<T>(root.re);
      lane_twiddles_[k * kRow<T> + kRowLanes<T> + l] = static_cast<T>(root.im);
    }
  }
  middle_bytes_ = static_cast<size_t>(row_blocks<T>(n1_) * n2_ * kRow<T>) * sizeof(T);
  workspace_bytes_ = static_cast<size_t>(std::max(2 * n1_, n2_) * kRow<T>) * sizeof(T);
  if (parallel) {
    // Long rows need large workspaces: then fewer at once.
    constexpr int64_t kWorkspaces = 32 << 20;
    most_chunks_ = std::clamp<int64_t>(kWorkspaces / static_cast<int64_t>(workspace_bytes_), 4,
                                       Workspaces::kMost);
  }
  scratch_bytes_ = middle_bytes_ + static_cast<size_t>(most_chunks_) * workspace_bytes_;
}

template <class T>
void LineFft<T>::run(const FftChunks& chunks, const T* from, T* to, bool inverse, T scale,
                     std::byte* scratch) const {
  if (convolution_) {
    run_bluestein(chunks, from, to, inverse, scale, scratch);
    return;
  }
  T* const middle = numbers_at<T>(scratch);
  columns(chunks, from, inverse, middle, scratch + middle_bytes_);
  rows(chunks, middle, to, inverse, scale, scratch + middle_bytes_);
}

template <class T>
void LineFft<T>::columns(const FftChunks& chunks, const T* from, bool inverse, T* middle,
                         std::byte* workspaces) const {
  const FftCut cut(row_blocks<T>(n2_), most_chunks_);
  Workspaces free;
  chunks(cut.chunks, fft_cost_ns(n_) / 2, [&](int64_t chunk) {
    const Workspaces::Use use(free);
    T* const workspace = numbers_at<T>(workspaces + use.index() * workspace_bytes_);
    cut.each(chunk, [&](int64_t block) { column_block(from, inverse, block, middle, workspace); });
  });
}

template <class T>
void LineFft<T>::column_block(const T* from, bool inverse, int64_t block, T* middle,
                              T* workspace) const {
  constexpr int64_t lanes = kRowLanes<T>, row = kRow<T>;
  constexpr int n = kLanes<T>;
  const int64_t column = block * lanes, here = std::min(lanes, n2_ - column);
  for (int64_t j = 0; j < n1_; ++j) {
    load_neighbours<T>(from + 2 * (j * n2_ + column), here, inverse, workspace + j * row);
  }
  const T* const x = first_->run(workspace, workspace + n1_ * row);
  for (int64_t k = 0; k < n1_; k += n) {
    const int64_t some = std::min<int64_t>(n, n1_ - k);
    T* const to = middle + ((k / lanes) * n2_ + column) * row + k % lanes;
    for (int part = 0; part < kRowParts<T>; ++part) {
      Vec<T> re[n] = {}, im[n] = {};
      for (int64_t i = 0; i < some; ++i) {
        const Root root = roots_((k + i) * column);
        const ComplexVec<T> base = {splat<Vec<T>>(static_cast<T>(root.re)),
                                    splat<Vec<T>>(static_cast<T>(root.im))};
        const T* const lane = lane_twiddles_.data() + (k + i) * row;
        const ComplexVec<T> v =
            times<T>(load_row<T>(x + (k + i) * row, part), times<T>(load_row<T>(lane, part), base));
        re[i] = v.re;
        im[i] = v.im;
      }
      transpose<T>(re);
      transpose<T>(im);
      const int64_t last = std::min<int64_t>(n, here - part * n);
      for (int64_t l = 0; l < last; ++l) {
        store(to + (part * n + l) * row, re[l]);
        store(to + (part * n + l) * row + lanes, im[l]);
      }
    }
  }
  // Lanes of the last block of rows that no row fills.
  for (int64_t k = (n1_ + n - 1) / n * n; k % lanes != 0; k += n) {
    T* const to = middle + ((k / lanes) * n2_ + column) * row + k % lanes;
    for (int64_t l = 0; l < here; ++l) {
      store(to + l * row, Vec<T>{});
      store(to + l * row + lanes, Vec<T>{});
    }
  }
}

template <class T>
void LineFft<T>::rows(const FftChunks& chunks, T* middle, T* to, bool inverse, T scale,
                      std::byte* workspaces) const {
  constexpr int64_t lanes = kRowLanes<T>, row = kRow<T>;
  const FftCut cut(row_blocks<T>(n1_), most_chunks_);
  Workspaces free;
  chunks(cut.chunks, fft_cost_ns(n_) / 2, [&](int64_t chunk) {
    const Workspaces::Use use(free);
    T* const workspace = numbers_at<T>(workspaces + use.index() * workspace_bytes_);
    cut.each(chunk, [&](int64_t block) {
      const T* const x = second_->run(middle + block * n2_ * row, workspace);
      const int64_t first = block * lanes, here = std::min(lanes, n1_ - first);
      for (int64_t k = 0; k < n2_; ++k) {
        store_neighbours<T>(x + k * row, here, inverse, scale, to + 2 * (k * n1_ + first));
      }
    });
  });
}

template <class T>
void LineFft<T>::plan_bluestein(bool parallel) {
  const int64_t m = convolution_length(n_);
  convolution_ = std::make_unique<LineFft>(m, parallel);
  middle_bytes_ = round_up(static_cast<size_t>(m) * 2 * sizeof(T));
  scratch_bytes_ = middle_bytes_ + convolution_->scratch_bytes_;
  const RootTable roots(2 * n_);
  chirp_.resize(2 * n_);
  spectrum_.resize(2 * m);
  int64_t square = 0;  // j * j, modulo 2 n
  for (int64_t j = 0; j < n_; ++j) {
    const Root root = roots(square);
    square = (square + 2 * j + 1) % (2 * n_);
    chirp_[2 * j] = static_cast<T>(root.re);
    chirp_[2 * j + 1] = static_cast<T>(root.im);
    for (const int64_t at : {j, (m - j) % m}) {
      spectrum_[2 * at] = chirp_[2 * j];
      spectrum_[2 * at + 1] = -chirp_[2 * j + 1];
    }
  }
  std::vector<std::byte> scratch(convolution_->scratch_bytes_);
  convolution_->run(FftChunks(), spectrum_.data(), spectrum_.data(), false,
                    T(1) / static_cast<T>(m), scratch.data());
}

template <class T>
void LineFft<T>::run_bluestein(const FftChunks& chunks, const T* from, T* to, bool inverse, T scale,
                               std::byte* scratch) const {
  const int64_t m = convolution_->n_;
  T* const x = numbers_at<T>(scratch);
  std::byte* const rest = scratch + middle_bytes_;
  // z[i] = a[i] * b[i]; for inverse transforms real and imaginary parts are exchanged on the way in
  // and out.
  constexpr int64_t kGrain = 1 << 14;
  auto sweep = [&](int64_t count, const T* a, int re, const T* b, T* z, int z_re) {
    const int64_t blocks = (count + kGrain - 1) / kGrain;
    chunks(blocks, static_cast<double>(count), [&](int64_t block) {
      const int64_t end = std::min(count, (block + 1) * kGrain);
      for (int64_t i = block * kGrain; i < end; ++i) {
        const T a_re = a[2 * i + re], a_im = a[2 * i + 1 - re];
        const T b_re = b[2 * i], b_im = b[2 * i + 1];
        z[2 * i + z_re] = a_re * b_re - a_im * b_im;
        z[2 * i + 1 - z_re] = a_re * b_im + a_im * b_re;
      }
    });
  };
  const int first = inverse ? 1 : 0;
  sweep(n_, from, first, chirp_.data(), x, 0);
  std::fill(x + 2 * n_, x + 2 * m, T(0));
  convolution_->run(chunks, x, x, false, T(1), rest);
  sweep(m, x, 0, spectrum_.data(), x, 0);
  convolution_->run(chunks, x, x, true, scale, rest);
  sweep(n_, x, 0, chirp_.data(), to, first);
}

template class LineFft<float>;
template class LineFft<double>;

}  // namespace treenail::cpu
