// SPDX-License-Identifier: Apache-2.0
// Which way a complex transform along an axis goes, and the two ways.
#include "kernels/cpu/fft/fft_axis.h"

#include <algorithm>

#include "kernels/cpu/fft/fft_rows.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
FftWay fft_way(int64_t lines, int64_t n) {
  constexpr int64_t kLongestInLanes = 1024, kLargeEnough = 1 << 15;
  if (n <= kLongestInLanes) {
    // Two lines fill few lanes; cut in two they fill all.
    const bool cut = lines <= 2 && n >= 64 && is_smooth(n);
    return cut ? FftWay::kOneLine : FftWay::kLanes;
  }
  return n >= kLargeEnough || lines < 8 ? FftWay::kOneLine : FftWay::kLines;
}

template <class T>
AxisFft<T>::AxisFft(int64_t outer, int64_t n, int64_t inner)
    : outer_(outer), n_(n), inner_(inner), way_(fft_way(outer * inner, n)) {
  if (way_ == FftWay::kLanes) {
    lanes_ = LaneFft<T>::of(n);
    per_chunk_ = static_cast<size_t>(2 * lanes_->rows() * kRow<T>) * sizeof(T);
    most_chunks_ = Workspaces::kMost;
  } else {
    line_ = std::make_unique<LineFft<T>>(n, way_ == FftWay::kOneLine);
    copy_bytes_ = inner == 1 ? 0 : (static_cast<size_t>(2 * n) * sizeof(T) + 63) / 64 * 64;
    per_chunk_ = copy_bytes_ + line_->scratch_bytes();
    most_chunks_ = way_ == FftWay::kLines ? kMostLineChunks : 1;
  }
  scratch_bytes_ = static_cast<size_t>(most_chunks_) * per_chunk_;
}

template <class T>
double AxisFft<T>::cost_ns() const {
  return static_cast<double>(outer_ * inner_) * fft_cost_ns(n_);
}

template <class T>
void AxisFft<T>::run(const RunContext& c, const T* from, T* to, bool inverse, T scale,
                     std::byte* scratch) const {
  if (way_ == FftWay::kLanes) {
    run_lanes(c, from, to, inverse, scale, scratch);
  } else {
    run_lines(c, from, to, inverse, scale, scratch);
  }
}

template <class T>
void AxisFft<T>::run_lanes(const RunContext& c, const T* from, T* to, bool inverse, T scale,
                           std::byte* scratch) const {
  constexpr int64_t lanes = kRowLanes<T>, row = kRow<T>;
  const int64_t side = inner_ == 1 ? outer_ : inner_;  // where the lanes are taken
  const int64_t per_side = (side + lanes - 1) / lanes;
  const FftCut cut(inner_ == 1 ? per_side : outer_ * per_side, most_chunks_);
  Workspaces free;
  c.run_chunks(cut.chunks, cost_ns(), [&](int64_t chunk) {
    const Workspaces::Use use(free);
    T* const a = numbers_at<T>(scratch + use.index() * per_chunk_);
    T* const b = a + lanes_->rows() * row;
    cut.each(chunk, [&](int64_t block) {
      const int64_t first = block % per_side * lanes, here = std::min(lanes, side - first);
      if (inner_ == 1) {
        const int64_t offset = 2 * first * n_;
        gather_lines<T>(from + offset, 2 * n_, 2 * n_, here, [&](int64_t i) {
          return a + i / 2 * row + ((i % 2 != 0) != inverse ? lanes : 0);
        });
        T* const x = lanes_->run(a, b);
        const auto result = [&](int64_t i) {
          return x + i / 2 * row + ((i % 2 != 0) != inverse ? lanes : 0);
        };
        scatter_lines<T>(result, 2 * n_, 2 * n_, here, scale, to + offset);
        return;
      }
      const int64_t offset = 2 * (block / per_side * n_ * inner_ + first);
      for (int64_t j = 0; j < n_; ++j) {
        load_neighbours<T>(from + offset + 2 * j * inner_, here, inverse, a + j * row);
      }
      const T* const x = lanes_->run(a, b);
      for (int64_t j = 0; j < n_; ++j) {
        store_neighbours<T>(x + j * row, here, inverse, scale, to + offset + 2 * j * inner_);
      }
    });
  });
}

template <class T>
void AxisFft<T>::run_lines(const RunContext& c, const T* from, T* to, bool inverse, T scale,
                           std::byte* scratch) const {
  auto one = [&](const FftChunks& chunks, int64_t line, std::byte* space) {
    if (inner_ == 1) {
      line_->run(chunks, from + 2 * line * n_, to + 2 * line * n_, inverse, scale, space);
      return;
    }
    const int64_t offset = 2 * (line / inner_ * n_ * inner_ + line % inner_);
    T* const copy = numbers_at<T>(space);
    for (int64_t j = 0; j < n_; ++j) std::copy_n(from + offset + 2 * j * inner_, 2, copy + 2 * j);
    line_->run(chunks, copy, copy, inverse, scale, space + copy_bytes_);
    for (int64_t j = 0; j < n_; ++j) std::copy_n(copy + 2 * j, 2, to + offset + 2 * j * inner_);
  };
  const int64_t lines = outer_ * inner_;
  if (way_ == FftWay::kOneLine) {
    for (int64_t line = 0; line < lines; ++line) one(FftChunks(c), line, scratch);
    return;
  }
  const FftCut cut(lines, most_chunks_);
  c.run_chunks(cut.chunks, cost_ns(), [&](int64_t chunk) {
    cut.each(chunk, [&](int64_t line) { one(FftChunks(), line, scratch + chunk * per_chunk_); });
  });
}

template class AxisFft<float>;
template class AxisFft<double>;

}  // namespace treenail::cpu
