// SPDX-License-Identifier: Apache-2.0
// What the kernels of lists share.
#pragma once

#include <cstdint>
#include <span>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor_list.h"

namespace treenail::host {

// The shape that a value tells: extents, -1 where unknown; the scalar -1 says nothing. Errors:
// InvalidArgument.
PartialShape told_shape(const Tensor& value);

struct OwnList {
  Tensor handle;
  TensorList* list;
};
// The list of input 0, for its kernel to change and to give on: itself where nobody else holds it,
// else a copy. Errors: InvalidArgument where it is none.
OwnList take_list(RunContext& c);

// The shape that an element has which is not set: as told, by the list, or by its other elements.
// Errors: InvalidArgument where that is not one shape.
Shape unset_shape(const TensorList& list, const PartialShape& told);

// Element i, of those there are. Errors: InvalidArgument for another shape than told.
Tensor element(const TensorList& list, int64_t i, const PartialShape& told);

// One tensor of these rows; undefined ones are zeros. The others are of the shape `row`.
Tensor stacked(RunContext& c, DType dtype, const Shape& row, std::span<const Tensor> rows);

}  // namespace treenail::host
