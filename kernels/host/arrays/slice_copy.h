// SPDX-License-Identifier: Apache-2.0
// Slices as strided copies, on every device.
#pragma once

#include "framework/op/slice_spec.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {

// Copies between the sliced places of an array of shape `whole` and a dense array of the slice.
StridedCopy slice_copy(DType dtype, const Shape& whole, const SliceSpec& spec, bool into_whole);
// Errors: InvalidArgument unless a value of that shape takes the place of a variable's slice.
void check_slice_value(const SliceSpec& spec, const Shape& value);

}  // namespace treenail::host
