// SPDX-License-Identifier: Apache-2.0
// The Fourier transform of one long contiguous sequence. A length n1 n2 is done in two sweeps
// through memory (Bailey, FFTs in External or Hierarchical Memory, 1990): n2 transforms of length
// n1 over columns, kRowLanes at a time, twiddle factors, n1 transforms of length n2 over rows. A
// length with a large prime factor becomes a cyclic convolution (Bluestein 1970).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/fft/fft_lanes.h"
#include "kernels/cpu/fft/fft_roots.h"

namespace treenail::cpu {

// chunks bodies on the pool, or, without a context, one after the other: where the caller is one of
// many itself.
class FftChunks {
 public:
  FftChunks() = default;
  explicit FftChunks(const RunContext& context) : context_(&context) {}
  template <class F>
  void operator()(int64_t chunks, double cost_ns, F&& body) const {
    if (context_ != nullptr) {
      context_->run_chunks(chunks, cost_ns, body);
    } else {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    }
  }

 private:
  const RunContext* context_ = nullptr;
};

// A loop over `items` cut into at most `most` chunks of equal size, by shape alone.
struct FftCut {
  int64_t items, grain, chunks;
  FftCut(int64_t items, int64_t most)
      : items(items),
        grain(items <= most ? 1 : (items + most - 1) / most),
        chunks((items + grain - 1) / grain) {}
  template <class F>
  void each(int64_t chunk, F&& body) const {
    const int64_t end = std::min(items, (chunk + 1) * grain);
    for (int64_t i = chunk * grain; i < end; ++i) body(i);
  }
};

double fft_cost_ns(int64_t n);

// Long lines that are transformed at the same time.
inline constexpr int64_t kMostLineChunks = 16;

template <class T>
T* numbers_at(std::byte* p) {
  return reinterpret_cast<T*>(p);
}

template <class T>
class LineFft {
 public:
  // parallel: run() may use the pool; it then needs more scratch.
  LineFft(int64_t n, bool parallel);

  int64_t size() const { return n_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  // to[k] = scale * sum over j of from[j] e^(-+2 pi i j k / n); interleaved, `to` may be `from`.
  void run(const FftChunks& chunks, const T* from, T* to, bool inverse, T scale,
           std::byte* scratch) const;

 private:
  void columns(const FftChunks& chunks, const T* from, bool inverse, T* middle,
               std::byte* workspaces) const;
  void column_block(const T* from, bool inverse, int64_t block, T* middle, T* workspace) const;
  void rows(const FftChunks& chunks, T* middle, T* to, bool inverse, T scale,
            std::byte* workspaces) const;
  void plan_bluestein(bool parallel);
  void run_bluestein(const FftChunks& chunks, const T* from, T* to, bool inverse, T scale,
                     std::byte* scratch) const;

  int64_t n_, n1_ = 1, n2_ = 1;
  RootTable roots_;
  std::shared_ptr<const LaneFft<T>> first_, second_;
  std::vector<T> lane_twiddles_;  // per row k of n1: e^(-2 pi i k l / n) for each lane l
  int64_t most_chunks_ = 1;
  size_t middle_bytes_ = 0, workspace_bytes_ = 0, scratch_bytes_ = 0;
  // Bluestein: the transform of the convolution, the chirp (n complex numbers), the chirp's
  // transform divided by its length.
  std::unique_ptr<const LineFft> convolution_;
  std::vector<T> chirp_, spectrum_;
};

}  // namespace treenail::cpu
