// SPDX-License-Identifier: Apache-2.0
// Gradients of slices as rows: for one of an extent of many, zeros in the shape of the whole would
// cost what the whole does. For loops, which read a slice of the same value in every iteration.
#pragma once

#include <span>

#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/op/gradient.h"

namespace treenail {

// Whether the value is one of these, or what is read of a variable that is one of them.
bool is_row_source(const Output& value, std::span<const Output> values);
// Whether the node is a slice of such a value.
bool is_slice_of(const Node& node, std::span<const Output> values);

// Where the node takes rows of one of these values, or of what is read of these variables: the
// gradient of input 0 as slices, and true. Else nothing is added.
bool row_gradient(const Node& node, std::span<const Output> values, GraphEmitter& emitter,
                  const Gradient& output_gradient, Gradient& result);

}  // namespace treenail
