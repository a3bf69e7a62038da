// SPDX-License-Identifier: Apache-2.0
// Complex Fourier transforms along one axis of an array [outer, n, inner]. Short sequences go side
// by side through fft_lanes.h, long ones one by one through fft_line.h; work is cut by shape alone.
// Between real numbers and spectra: fft_real.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/fft/fft_line.h"

namespace treenail::cpu {

// Short sequences: side by side. Long ones: one by one, on all threads where there are few.
enum class FftWay : uint8_t { kLanes, kLines, kOneLine };

FftWay fft_way(int64_t lines, int64_t n);

template <class T>
class AxisFft {
 public:
  AxisFft(int64_t outer, int64_t n, int64_t inner);
  size_t scratch_bytes() const { return scratch_bytes_; }
  double cost_ns() const;
  // Interleaved complex numbers; `to` may be `from`.
  void run(const RunContext& c, const T* from, T* to, bool inverse, T scale,
           std::byte* scratch) const;

 private:
  void run_lanes(const RunContext& c, const T* from, T* to, bool inverse, T scale,
                 std::byte* scratch) const;
  void run_lines(const RunContext& c, const T* from, T* to, bool inverse, T scale,
                 std::byte* scratch) const;

  int64_t outer_, n_, inner_;
  FftWay way_;
  std::shared_ptr<const LaneFft<T>> lanes_;
  std::unique_ptr<const LineFft<T>> line_;
  size_t per_chunk_ = 0, copy_bytes_ = 0, scratch_bytes_ = 0;
  int64_t most_chunks_ = 1;
};

}  // namespace treenail::cpu
