// SPDX-License-Identifier: Apache-2.0
// How ReverseSequence's array lies, and what it says of a bad length, on every device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail::host {

// Rows are the elements below both axes; every row is found by its coordinates.
struct SequenceLayout {
  int64_t rows;
  int64_t row;                     // elements
  int64_t seq_extent, seq_stride;  // strides in rows
  int64_t batch_extent, batch_stride;
};

inline SequenceLayout sequence_layout(const PrepareContext& p) {
  const Shape& shape = p.input_shape(0);
  const auto axis_of = [&](const char* name) {
    const int64_t axis = p.op().get_int(name);
    return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
  };
  const int seq = axis_of("seq_dim");
  const int batch = axis_of("batch_dim");
  const int row_axis = std::max(seq, batch) + 1;
  return {shape.sub(0, row_axis).num_elements(),
          shape.sub(row_axis, shape.rank()).num_elements(),
          shape.dim(seq),
          shape.sub(seq + 1, row_axis).num_elements(),
          shape.dim(batch),
          shape.sub(batch + 1, row_axis).num_elements()};
}

[[noreturn]] inline void throw_bad_length(int64_t place, int64_t length, int64_t extent) {
  throw invalid_argument("seq_lengths[", place, "] = ", length, " is not in [0, ", extent,
                         "], the extent of input along seq_dim");
}

}  // namespace treenail::host
