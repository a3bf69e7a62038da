// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/elementwise/tile_space.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "framework/base/error.h"

namespace treenail::host {
namespace {

// Strides of `shape` along the axes of the output, which may have more leading axes.
void broadcast_strides(const Shape& shape, int output_rank, int64_t* strides) {
  int64_t stride = 1;
  for (int axis = output_rank - 1; axis >= 0; --axis) {
    const int own = axis - (output_rank - shape.rank());
    const int64_t extent = own >= 0 ? shape.dim(own) : 1;
    strides[axis] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

bool mergeable(const TileSpace& space, int axis, int64_t next_extent, const int64_t* next_strides) {
  for (size_t k = 0; k < space.operands.size(); ++k) {
    if (space.operands[k].stride[axis] != next_strides[k] * next_extent) return false;
  }
  return true;
}

// Runs are short here (a longer inner axis is walked row by row), so elements are moved in line.
template <int kSize>
void gather(const TileSpace& space, int operand, const std::byte* from, int64_t begin, int64_t n,
            std::byte* to) {
  const int64_t inner = space.inner();
  const int64_t step = space.operands[static_cast<size_t>(operand)].stride[space.rank - 1] * kSize;
  OuterPosition position(space, begin / inner);
  int64_t column = begin % inner;
  while (n > 0) {
    const int64_t run = std::min(n, inner - column);
    const std::byte* at = from + position.offset(operand) * kSize + column * step;
    for (int64_t i = 0; i < run; ++i, at += step, to += kSize) std::memcpy(to, at, kSize);
    n -= run;
    column = 0;
    position.advance();
  }
}

}  // namespace

TileSpace make_tile_space(const Shape& output, std::span<const Shape* const> operands) {
  if (operands.size() > kMostFusedInputs) {
    throw internal_error("a space of ", operands.size(), " operands; at most ", kMostFusedInputs,
                         " are walked together");
  }
  TileSpace space;
  space.elements = output.num_elements();
  space.operands.resize(operands.size());
  const auto axes = static_cast<size_t>(output.rank());
  std::vector<int64_t> strides(operands.size() * axes);
  for (size_t k = 0; k < operands.size(); ++k) {
    broadcast_strides(*operands[k], output.rank(), strides.data() + k * axes);
    space.operands[k].single = operands[k]->num_elements() == 1;
    space.operands[k].contiguous = operands[k]->num_elements() == space.elements;
  }
  std::vector<int64_t> next(operands.size());
  for (int axis = 0; axis < output.rank(); ++axis) {
    const int64_t extent = output.dim(axis);
    if (extent == 1) continue;
    for (size_t k = 0; k < operands.size(); ++k)
      next[k] = strides[k * axes + static_cast<size_t>(axis)];
    if (space.rank > 0 && mergeable(space, space.rank - 1, extent, next.data())) {
      space.extent.back() *= extent;
      for (size_t k = 0; k < operands.size(); ++k) space.operands[k].stride.back() = next[k];
    } else {
      ++space.rank;
      space.extent.push_back(extent);
      for (size_t k = 0; k < operands.size(); ++k) space.operands[k].stride.push_back(next[k]);
    }
  }
  if (space.rank == 0) {  // a single element: every operand is an array of one
    space.rank = 1;
    space.extent.push_back(1);
    for (TileSpace::Operand& operand : space.operands) operand.stride.push_back(1);
  }
  return space;
}

OuterPosition::OuterPosition(const TileSpace& space, int64_t row)
    : space_(space), index_(space.extent.size()) {
  for (int axis = space.rank - 2; axis >= 0; --axis) {
    index_[axis] = row % space.extent[axis];
    row /= space.extent[axis];
    for (size_t k = 0; k < space.operands.size(); ++k) {
      offset_[k] += index_[axis] * space.operands[k].stride[axis];
    }
  }
}

void OuterPosition::advance() {
  for (int axis = space_.rank - 2; axis >= 0; --axis) {
    const bool wraps = ++index_[axis] == space_.extent[axis];
    const int64_t steps = wraps ? 1 - space_.extent[axis] : 1;
    for (size_t k = 0; k < space_.operands.size(); ++k) {
      offset_[k] += steps * space_.operands[k].stride[axis];
    }
    if (!wraps) return;
    index_[axis] = 0;
  }
}

void gather_tile(const TileSpace& space, int operand, const void* base, int element_size,
                 int64_t begin, int64_t n, void* tile) {
  const auto* from = static_cast<const std::byte*>(base);
  auto* to = static_cast<std::byte*>(tile);
  switch (element_size) {
    case 1:
      return gather<1>(space, operand, from, begin, n, to);
    case 2:
      return gather<2>(space, operand, from, begin, n, to);
    case 4:
      return gather<4>(space, operand, from, begin, n, to);
    case 8:
      return gather<8>(space, operand, from, begin, n, to);
    default:  // complex128: dtypes have no other sizes
      return gather<16>(space, operand, from, begin, n, to);
  }
}

}  // namespace treenail::host
