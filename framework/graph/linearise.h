// SPDX-License-Identifier: Apache-2.0
// A function beside its derivative: its body with the nodes of its gradient, cut in two. The
// forward part is the function, which also gives what the backward part reads; the backward part
// computes gradients of arguments from gradients of results. Both are functions of one graph that
// share it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/function.h"
#include "framework/graph/gradients.h"
#include "framework/graph/graph.h"

namespace treenail {

// How the bodies that a node calls are differentiated.
struct BodySetting {
  Graph& library;  // in whose functions those of bodies are found, and to which more are added
  GradientOverrides* overrides = nullptr;  // of the node's graph
  bool gate = false;                       // as in GradientOptions
  // The backward part computes again what the forward part did (recompute.h).
  bool recompute = false;
  RowSources* rows_of = nullptr;  // of the node's graph, as in GradientOptions
};

// What of a function is differentiated.
struct BodyRequest {
  std::vector<bool> has_gradient;  // by output
  std::vector<bool> wanted;        // by input
  std::vector<Output> around;      // by input, as for GradientOverrides::in_body
  std::vector<bool> rows;          // by input, or none: the gradient may be rows
};

// Rows of a value: as Gradient's slices.
struct Rows {
  Output values, indices;
  bool sliced = false;  // as in RowSources
};

struct Linearised {
  std::shared_ptr<Graph> body;
  std::vector<Output> inputs, outputs;  // of the function
  std::vector<Output> incoming;         // per output that has a gradient: its placeholder
  std::vector<Output> gradients;        // per input; {nullptr}: none, or not wanted
  std::vector<Rows> rows;               // per input, instead of a gradient; {nullptr}: none
  // What the backward part reads of the forward part: inputs by number, and other values.
  std::vector<bool> reads_input;
  std::vector<Output> kept;
  // What the backward part reads of the graph around besides.
  std::vector<CapturedValue> captured;
  std::shared_ptr<const BodyRules> rules;  // for functions made of the body
  int forward_nodes = 0;                   // nodes of the body that are no gradient's
  // Of the forward part, what the backward part does not compute anew. By node; none: everything.
  std::vector<bool> computed_once;

  // After nodes were added for more gradients.
  void find_reads();
};

// The caller holds the library's mutex. Errors: as add_gradients.
Linearised linearise(const Function& function, const BodyRequest& request,
                     const BodySetting& setting);

// A node whose value a function is given.
Output add_placeholder(Graph& graph, std::string_view name, DType dtype, const PartialShape& shape);
// Of which all is known that is known of `value`, which may be another graph's, but the value.
Output add_placeholder_like(Graph& graph, std::string_view name, const Output& value);

// Adds a function with these inputs and outputs, values of the body, which is finished, unless it
// may grow: no node that it has then changes. Its name: `wanted` made unique.
std::string add_function(Graph& library, std::string_view wanted, std::shared_ptr<Graph> body,
                         std::span<const Output> inputs, std::span<const Output> outputs,
                         std::shared_ptr<const BodyRules> rules = nullptr, bool may_grow = false);

// Errors: NotFound.
const Function& function_named(const Graph& library, std::string_view name);

}  // namespace treenail
