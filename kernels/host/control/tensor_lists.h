// SPDX-License-Identifier: Apache-2.0
// What the kernels of lists share.
#pragma once

#include <cstdint>

#include "framework/base/function_ref.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor_list.h"

namespace treenail::host {

// The shape that a value tells: extents, -1 where unknown; the scalar -1 says nothing. Errors:
// InvalidArgument.
PartialShape told_shape(const Tensor& value);

// The shape that an element has which is not set: as told, by the list, or by its other elements.
// Errors: InvalidArgument where that is not one shape.
Shape unset_shape(const TensorList& list, const PartialShape& told);

// Element i, of those there are. Errors: InvalidArgument for another shape than told.
Tensor element(const TensorList& list, int64_t i, const PartialShape& told);

// Number i of what becomes the rows of a tensor; undefined ones are zeros.
using Rows = FunctionRef<const Tensor&(int64_t)>;
// One tensor of `count` rows of the shape `row`.
Tensor stacked(RunContext& c, DType dtype, const Shape& row, int64_t count, Rows rows);

}  // namespace treenail::host
