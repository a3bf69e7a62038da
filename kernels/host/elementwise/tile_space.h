// SPDX-License-Identifier: Apache-2.0
// The iteration space of a broadcasting op: the output's axes, adjacent ones merged where every
// operand allows it, and per operand a stride for each (0 where it is broadcast). Also the copying
// of a strided operand into a contiguous tile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/base/small_vector.h"
#include "framework/runtime/kernel/kernel_fusion.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

struct TileSpace {
  struct Operand {
    SmallVector<int64_t, 4> stride;  // in elements, per axis of the space
    bool contiguous = false;         // its elements are the output's, one to one
    bool single = false;             // one element serves everywhere
  };
  int rank = 0;                    // at least 1; axes of extent 1 are gone unless all are
  SmallVector<int64_t, 4> extent;  // per axis
  int64_t elements = 0;
  std::vector<Operand> operands;

  int64_t inner() const { return extent[rank - 1]; }
};

// Each operand's shape broadcasts to `output` (checked by the shape rule). Errors: Internal for
// more than kMostFusedInputs operands: groups are made within it, and no op that walks a space has
// so many.
TileSpace make_tile_space(const Shape& output, std::span<const Shape* const> operands);

// A position in the outer axes (all but the last), and every operand's offset there.
class OuterPosition {
 public:
  OuterPosition(const TileSpace& space, int64_t row);
  int64_t offset(int operand) const { return offset_[operand]; }
  void advance();  // to the next row

 private:
  const TileSpace& space_;
  SmallVector<int64_t, 4> index_;
  int64_t offset_[kMostFusedInputs] = {};
};

// Copies the elements of operand `operand` that belong to output elements [begin, begin + n) to
// `tile`.
void gather_tile(const TileSpace& space, int operand, const void* base, int element_size,
                 int64_t begin, int64_t n, void* tile);

}  // namespace treenail::host
