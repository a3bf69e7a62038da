// SPDX-License-Identifier: Apache-2.0
// The register tile under every matrix product here (gemm.cc, direct convolution): a few rows by
// one or two vectors of C, held in registers while k runs. Compiled once (tile.cc) and called by
// pointer: a tile is hundreds of cycles.
#pragma once

#include <cstdint>

#include "kernels/cpu/registers.h"

namespace treenail::cpu {

// As many accumulators as hide the latency of a multiply-add and still fit.
inline constexpr int kTileRows = kVecRegisters == 32 ? 8 : 6;
inline constexpr int kTileVectors = 2;
template <class T>
inline constexpr int kTileColumns = kTileVectors* kLanes<T>;

// C = or += A B over segments * depth values of k. k runs through `depth` values in each segment.
// Element (i, k) of A lies at a[segment * a_segment + i * a_row + k * a_step]; the rows of B follow
// each other, `ldb` apart, through all segments.
template <class T>
struct TileCall {
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

// The most rows of a tile: twice as many where one vector of columns leaves half the registers
// free.
template <class T>
constexpr int64_t tile_rows(int64_t columns) {
  return columns <= kLanes<T> ? 2 * kTileRows : kTileRows;
}

// Computes rows <= tile_rows(columns) and columns <= kTileColumns of C. Whole vectors of B are
// read; an element's bits do not depend on rows and columns.
void run_tile(int64_t rows, int64_t columns, const TileCall<float>& t);
void run_tile(int64_t rows, int64_t columns, const TileCall<double>& t);

// Panels of B for run_tile: [columns / kTileColumns][k][kTileColumns], columns behind the last
// undefined or zero. From B[k, columns], which is read once, row by row: whole vectors while B's
// own storage reaches that far.
void pack_panels(const float* b, int64_t ldb, int64_t depth, int64_t columns, float* panels);
void pack_panels(const double* b, int64_t ldb, int64_t depth, int64_t columns, double* panels);
// One panel from B stored [columns, k].
void pack_panel_transposed(const float* b, int64_t ldb, int64_t depth, int64_t columns,
                           float* panel);
void pack_panel_transposed(const double* b, int64_t ldb, int64_t depth, int64_t columns,
                           double* panel);

}  // namespace treenail::cpu
