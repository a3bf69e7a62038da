// SPDX-License-Identifier: Apache-2.0
// What a segment without rows holds, on every device.
#pragma once

#include "framework/tensor/tensor.h"

namespace treenail::host {

enum class SegmentReduction : int { kSum, kProduct, kMaximum, kMinimum, kMean, kSqrtN };

// One element. Sorted ids leave gaps of 0 (TensorFlow), but products always begin with 1.
Tensor segment_gap(SegmentReduction what, bool sorted, DType dtype);

}  // namespace treenail::host
