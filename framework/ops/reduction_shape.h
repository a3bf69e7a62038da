// SPDX-License-Identifier: Apache-2.0
// What reductions have in common at the level of shapes: which axes are reduced, and the shape that
// is left.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/shape_context.h"

namespace treenail {

// The axes among [0, rank) that `axes` names, counted from the end when negative; a flag each.
// Errors: InvalidArgument for an axis out of range or named twice.
std::vector<bool> reduced_axes(const PartialValue& axes, int rank);

// Output 0 is input 0 without the axes in input 1 (or with extent 1 there, if attribute keep_dims
// says so).
void reduction_shape(ShapeContext& c);

}  // namespace treenail
