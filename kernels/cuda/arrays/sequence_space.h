// SPDX-License-Identifier: Apache-2.0
// An array of sequences, as kernels/host/arrays/sequence_layout.h has it.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

struct SequenceSpace {
  int64_t n;                       // elements
  Divisor row;                     // elements below both axes
  Divisor seq_stride, seq_extent;  // strides in rows
  Divisor batch_stride, batch_extent;
  int64_t lengths;
};

}  // namespace treenail::gpu
