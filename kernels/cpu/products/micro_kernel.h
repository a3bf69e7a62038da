// SPDX-License-Identifier: Apache-2.0
// The micro-kernel under every matrix product here (gemm.cc, direct convolution), as BLIS calls it
// (Van Zee and van de Geijn, 2015): a few rows by one or two vectors of C, held in registers while
// k runs. Compiled once (micro_kernel.cc) and called by pointer: a call is hundreds of cycles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

// As many accumulators as hide the latency of a multiply-add and still fit.
inline constexpr int kMicroRows = kVecRegisters == 32 ? 8 : 6;
inline constexpr int kMicroVectors = 2;
template <class T>
inline constexpr int kMicroColumns = kMicroVectors* kLanes<T>;

// C = or += A B over segments * depth values of k. k runs through `depth` values in each segment.
// Element (i, k) of A lies at a[segment * a_segment + i * a_row + k * a_step]; the rows of B follow
// each other, `ldb` apart, through all segments.
template <class T>
struct MicroKernelCall {
  int64_t depth;
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  bool add;
  int64_t segments = 1, a_segment = 0;
};

// Lines of memory that something later will read, for which no hardware prefetcher looks: fetched
// into L2 a few at a time, as often as some() is called.
struct FetchAhead {
  static constexpr int64_t kLine = 64;

  FetchAhead() = default;
  // `rows` of `row_bytes` each, `stride` bytes apart, in about so many calls.
  FetchAhead(const void* first, int64_t rows, int64_t row_bytes, int64_t stride, int64_t calls)
      : row_(static_cast<const char*>(first)),
        stride_(stride),
        lines_((row_bytes + kLine - 1) / kLine),
        left_(rows * lines_),
        per_call_((left_ + calls - 1) / calls) {}

  void some() {
    for (int64_t i = std::min(per_call_, left_); i > 0; --i) {
      __builtin_prefetch(row_ + line_ * kLine, 0, 2);
      if (++line_ == lines_) {
        line_ = 0;
        row_ += stride_;
      }
    }
    left_ -= std::min(per_call_, left_);
    if (also != nullptr) also->some();
  }

  FetchAhead* also = nullptr;

 private:
  const char* row_ = nullptr;
  int64_t stride_ = 0, lines_ = 1, line_ = 0, left_ = 0, per_call_ = 0;
};

// The most rows of a tile: twice as many where one vector of columns leaves half the registers
// free.
template <class T>
constexpr int64_t micro_rows(int64_t columns) {
  return columns <= kLanes<T> ? 2 * kMicroRows : kMicroRows;
}

// Computes rows <= micro_rows(columns) and columns <= kMicroColumns of C. Whole vectors of B are
// read; an element's bits do not depend on rows and columns.
void run_micro_kernel(int64_t rows, int64_t columns, const MicroKernelCall<float>& t);
void run_micro_kernel(int64_t rows, int64_t columns, const MicroKernelCall<double>& t);

// Any number of rows by columns <= kMicroColumns: tiles below each other, the A of one `a_tile`
// elements behind that of the one above. `ahead` is asked for some lines at every tile.
void run_micro_kernels(int64_t rows, int64_t columns, int64_t a_tile,
                       const MicroKernelCall<float>& t, FetchAhead& ahead);
void run_micro_kernels(int64_t rows, int64_t columns, int64_t a_tile,
                       const MicroKernelCall<double>& t, FetchAhead& ahead);

// Panels of B for run_micro_kernel: [columns / kMicroColumns][k][kMicroColumns], columns behind the
// last undefined or zero. From B[k, columns], which is read once, row by row: whole vectors while
// B's own storage reaches that far.
void pack_panels(const float* b, int64_t ldb, int64_t depth, int64_t columns, float* panels);
void pack_panels(const double* b, int64_t ldb, int64_t depth, int64_t columns, double* panels);
// One panel from B stored [columns, k].
void pack_panel_transposed(const float* b, int64_t ldb, int64_t depth, int64_t columns,
                           float* panel);
void pack_panel_transposed(const double* b, int64_t ldb, int64_t depth, int64_t columns,
                           double* panel);

}  // namespace treenail::cpu
