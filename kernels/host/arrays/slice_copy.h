// SPDX-License-Identifier: Apache-2.0
// Slices as strided copies, on every device.
#pragma once

#include "framework/op/slice_spec.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {

// The slice that inputs first ... first + 2 of an op describe, on an array of shape `shape`.
SliceSpec slice_of(const PrepareContext& p, const Shape& shape, int first);
// Copies between the sliced places of an array of shape `whole` and a dense array of the slice.
StridedCopy slice_copy(DType dtype, const Shape& whole, const SliceSpec& spec, bool into_whole);
// Errors: InvalidArgument unless a value of that shape takes the place of a variable's slice.
void check_slice_value(const SliceSpec& spec, const Shape& value);

}  // namespace treenail::host
