// SPDX-License-Identifier: Apache-2.0
// Gradients of slices as rows: for one of an extent of many, zeros in the shape of the whole would
// cost what the whole does. For loops, which read a slice of the same value in every iteration.
#pragma once

#include <span>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/op/gradient.h"

namespace treenail {

// The values of a graph of which rows are collected, and those of them of which slices were taken
// that have a dense gradient elsewhere, as gathered rows have not.
struct RowSources {
  std::vector<Output> values;
  std::vector<Output> sliced;

  // Which of them `value` is, or is read of, if that is a variable; else {nullptr}.
  Output behind(const Output& value) const;
  bool is_sliced(const Output& value) const;
};

// The value's first rows, of which there are none.
Value no_rows_of(Value value, GraphEmitter& emitter);

// Where the node is a slice that takes rows of a source: the gradient of input 0 as slices, and
// true. Else nothing is added.
bool row_gradient(const Node& node, RowSources& sources, GraphEmitter& emitter,
                  const Gradient& output_gradient, Gradient& result);

}  // namespace treenail
