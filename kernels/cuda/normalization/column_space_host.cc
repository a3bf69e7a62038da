// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/normalization/column_space_host.h"

#include <algorithm>

namespace treenail::cuda {

gpu::ColumnSpace column_space(int64_t columns, int64_t inner, int64_t count) {
  constexpr int64_t kWidest = 64;    // enough neighbours to use what memory gives at a time
  constexpr int64_t kBlocks = 2048;  // twice what a large GPU runs at a time
  constexpr int64_t kEach = 8;       // elements that are worth a thread
  gpu::ColumnSpace s;
  if (columns == 0) return s;
  s.columns = columns;
  s.inner = std::max<int64_t>(1, inner);
  s.count = count;
  // Neighbours in memory are columns, or elements of one.
  const int64_t tile = s.inner == 1 ? parts(columns, parts(columns, kWidest)) : 1;
  s.tile = static_cast<int32_t>(tile);
  s.lanes = gpu::kMostThreads / s.tile;
  s.tiles = parts(columns, tile);
  if (count == 0) return s;
  const int64_t most = std::max<int64_t>(1, kBlocks / s.tiles);
  const int64_t pieces = std::clamp<int64_t>(count / (s.lanes * kEach), 1, most);
  s.piece = parts(parts(count, pieces), s.lanes) * s.lanes;
  s.pieces = parts(count, s.piece);
  return s;
}

}  // namespace treenail::cuda
