// SPDX-License-Identifier: Apache-2.0
// Graphs of the C ABI that will be bodies of functions: which values of the graphs around they
// take, and what they become. Adding the calls: function_calls.cc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/capi/graph_handles.h"

namespace treenail::capi {

class Body {
 public:
  Body(std::shared_ptr<GraphState> outer, std::string name)
      : outer_(std::move(outer)), name_(std::move(name)) {}

  GraphState& outer() const { return *outer_; }
  const std::string& name() const { return name_; }
  // The graph around all bodies, where functions are.
  GraphState& root() const { return outer_->body() == nullptr ? *outer_ : outer_->body()->root(); }

  // What stands in `own`, the state this is the body of, for a value of a graph around. Errors:
  // InvalidArgument for a value of another graph.
  Output capture(GraphState& own, GraphState& of, const Output& value);
  // Values directly around that are captured, in order; and what stands for each.
  std::span<const Output> captured() const { return captured_; }
  Output stand_in(GraphState& own, const Output& captured);

  std::vector<Output> arguments;
  std::vector<Output> results;

 private:
  const std::shared_ptr<GraphState> outer_;
  const std::string name_;
  std::vector<Output> captured_, stand_ins_;
};

// The body that `graph` is. Errors: InvalidArgument.
Body& body_of(tn_graph* graph, const char* what);

// A value as one of `state`'s graph: captured, where it is a body's and the value is of a graph
// around.
Output value_in(GraphState& state, const tn_output* output, const char* what);
std::vector<Output> values_in(GraphState& state, const tn_output* const* outputs, size_t count,
                              const char* what);

}  // namespace treenail::capi
