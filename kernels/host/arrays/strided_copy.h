// SPDX-License-Identifier: Apache-2.0
// The one way in which elements move between layouts: a copy between two arrays of the same
// extents, each with strides of its own. Transposing, slicing, tiling, broadcasting, reversing,
// joining and splitting are all such copies; what differs is the strides. How it is done (rows,
// blocks, single elements) is decided once, when the plan is made.
#pragma once

#include <cstdint>
#include <span>

#include "framework/base/small_vector.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

class StridedCopy {
 public:
  explicit StridedCopy(DType dtype) : dtype_(dtype) {}

  // Axes from the outermost to the innermost; strides and offsets in elements, a stride may be 0
  // (source) or negative.
  StridedCopy& axis(int64_t extent, int64_t from_stride, int64_t to_stride);
  StridedCopy& offsets(int64_t from, int64_t to);
  // Call once after the last axis.
  StridedCopy& finish();

  // Distinct places of the target must not overlap. Plain elements of equal size may stand for each
  // other.
  void run(RunContext& c, const void* from, void* to) const;
  double cost_ns() const;
  int64_t num_elements() const { return elements_; }

  // For whoever copies in another way, of a finished copy of plain elements: bytes of what is moved
  // at a time, and axes and offsets counted in these.
  struct Axis {
    int64_t extent;
    int64_t from;
    int64_t to;
  };
  int64_t element_bytes() const { return element_bytes_; }
  std::span<const Axis> axes() const { return {axes_.begin(), axes_.end()}; }
  int64_t from_offset() const { return from_offset_; }
  int64_t to_offset() const { return to_offset_; }

 private:
  enum class Way : uint8_t { kNothing, kRows, kFill, kBlocks, kElements };

  int num_axes() const { return static_cast<int>(axes_.size()); }
  void simplify();
  void widen_elements();
  template <class T>
  void run_as(RunContext& c, const T* from, T* to) const;
  template <class T>
  void run_rows(RunContext& c, const T* from, T* to) const;
  template <class T>
  void run_blocks(RunContext& c, const T* from, T* to) const;
  // Positions of outer index `flat` (over all axes but the last `inner`).
  void locate(int64_t flat, int outer, int64_t& from, int64_t& to) const;

  DType dtype_;
  Way way_ = Way::kNothing;
  int block_axis_ = -1;
  int64_t element_bytes_ =
      0;  // of the elements that are moved: neighbours may have been taken together
  int64_t elements_ = 1;
  int64_t from_offset_ = 0;
  int64_t to_offset_ = 0;
  SmallVector<Axis, 4> axes_;
};

// Strides of a dense array, in elements.
struct Strides {
  int64_t of[kMaxRank];
  int64_t operator[](int axis) const { return of[axis]; }
};
Strides dense_strides(const Shape& shape);

}  // namespace treenail::host
