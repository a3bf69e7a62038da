// SPDX-License-Identifier: Apache-2.0
// A box of a tensor, as partitioned variables save themselves: "10 20 0,5:-" is rows [0, 5) and all
// columns of a [10,20] tensor (TensorFlow's shape_and_slice).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/tensor/shape.h"

namespace treenail {

struct TensorSlice {
  Shape full;     // of the whole tensor
  Extents start;  // same rank
  Shape extent;   // same rank

  // All of a tensor of this shape.
  static TensorSlice whole(const Shape& shape);
  // Parses "dim dim ... start,length:-:..."; "-" is all of an axis. Errors: InvalidArgument.
  static TensorSlice parse(std::string_view text);
  bool is_whole() const { return extent == full; }
  // The canonical text, which parse() reads back.
  std::string text() const;
  // What both cover; false when that is nothing. Both must have the same full shape.
  static bool intersection(const TensorSlice& a, const TensorSlice& b, TensorSlice* common);
};

}  // namespace treenail
