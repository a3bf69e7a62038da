// SPDX-License-Identifier: Apache-2.0
// An Emitter that adds nodes to a graph: a Value is (node id, output).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/op/gradient.h"

namespace treenail {

class GraphEmitter final : public Emitter {
 public:
  explicit GraphEmitter(Graph& graph) : graph_(graph) {}

  // New nodes are called `scope` + op type, and stand on `origin`'s device with its creation stack
  // (null: neither).
  void set_place(std::string scope, const Node* origin);

  std::vector<Value> emit(std::string_view op, std::span<const Value> inputs,
                          const NamedAttrs& attrs, std::span<const int> arg_sizes = {}) override;
  DType dtype(Value value) const override;
  PartialShape shape(Value value) const override;
  const Tensor* constant(Value value) const override;

  static Value value_of(const Output& output) { return {output.node->id(), output.index}; }
  // {nullptr, 0} for an invalid value.
  Output output_of(Value value) const;

 private:
  const ValueInfo& info(Value value) const {
    return graph_.node(static_cast<int>(value.id))->info(value.output);
  }

  Graph& graph_;
  std::string scope_;
  const Node* origin_ = nullptr;
};

}  // namespace treenail
