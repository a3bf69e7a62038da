// SPDX-License-Identifier: Apache-2.0
// What a NumPy-like slice x[a:b:c, ..., None, i] means for an input shape: shared by the shape
// rules and the kernels of the StridedSlice family. Everything may be partly unknown, as shape
// rules see it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/shape.h"

namespace treenail {

struct SliceMasks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;
  static SliceMasks of(const OpInstance& op);
};

// Along one input axis: elements begin, begin + stride, ... (count of them).
struct SliceAxis {
  std::optional<int64_t> begin;
  std::optional<int64_t> stride;
  int64_t count = kUnknown;
};

struct SliceSpec {
  bool rank_known = false;      // of the input; else nothing below is known
  std::vector<SliceAxis> axes;  // one per input axis
  PartialShape output;
};

// begin, end, strides: null while unknown; `entries` is their length (kUnknown while unknown).
// Errors: InvalidArgument (lengths differ, a stride of 0, too many entries, an index out of bounds,
// several ellipses).
SliceSpec resolve_slice(const PartialShape& input, const PartialValue* begin,
                        const PartialValue* end, const PartialValue* strides, int64_t entries,
                        const SliceMasks& masks);

}  // namespace treenail
