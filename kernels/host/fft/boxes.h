// SPDX-License-Identifier: Apache-2.0
// The tensors of Fourier transforms as batches of boxes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/tensor/shape.h"

namespace treenail::host {

inline constexpr int kMostAxes = 3;

// A batch of boxes: the last axes of a tensor, with extents of 1 before them where they are fewer
// than three.
struct Boxes {
  int64_t batch = 1;
  int64_t extent[kMostAxes] = {1, 1, 1};
  int64_t& last() { return extent[kMostAxes - 1]; }
  int64_t last() const { return extent[kMostAxes - 1]; }
  // Elements of one box.
  double size() const {
    return static_cast<double>(extent[0]) * static_cast<double>(extent[1]) *
           static_cast<double>(extent[2]);
  }
  int64_t lines() const { return batch * extent[0] * extent[1]; }

  static Boxes of(const Shape& shape, int axes) {
    Boxes b;
    for (int i = 0; i < shape.rank() - axes; ++i) b.batch *= shape.dim(i);
    for (int i = 0; i < axes; ++i) {
      b.extent[kMostAxes - 1 - i] = shape.dim(shape.rank() - 1 - i);
    }
    return b;
  }
};

inline bool same_extents(const Boxes& a, const Boxes& b) {
  return std::equal(a.extent, a.extent + kMostAxes, b.extent);
}

}  // namespace treenail::host
