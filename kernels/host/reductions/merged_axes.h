// SPDX-License-Identifier: Apache-2.0
// A shape as reductions see it: extents that are kept and reduced by turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/tensor/shape.h"

namespace treenail::host {

struct MergedAxis {
  int64_t extent;
  bool reduced;
};

// Neighbours of one kind as one axis, without those of extent 1. `reduced`: a flag for each axis.
inline std::vector<MergedAxis> merged_axes(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<MergedAxis> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = reduced[static_cast<size_t>(i)];
    if (shape.dim(i) == 1) continue;
    if (!axes.empty() && axes.back().reduced == is_reduced) {
      axes.back().extent *= shape.dim(i);
    } else {
      axes.push_back({shape.dim(i), is_reduced});
    }
  }
  return axes;
}

}  // namespace treenail::host
