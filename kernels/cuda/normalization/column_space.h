// SPDX-License-Identifier: Apache-2.0
// An array [outer, columns, inner] seen as its columns, of outer * inner elements each, and how
// they are cut for the blocks of a launch. The cut depends on the shape alone, and so does the
// order in which what pieces give is put together.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct ColumnSpace {
  int64_t columns = 0, inner = 1;
  int64_t count = 0;              // elements of a column
  int64_t tiles = 0;              // of `tile` columns, of which a block does a piece
  int64_t piece = 1, pieces = 0;  // elements of a column for a block, and how often there are such
  int32_t tile = 1, lanes = 1;    // tile * lanes threads: neighbours do the same row of the tile
  int64_t results() const { return columns * pieces; }
  int64_t blocks() const { return tiles * pieces; }
};

}  // namespace treenail::gpu
