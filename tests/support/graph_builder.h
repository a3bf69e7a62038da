// SPDX-License-Identifier: Apache-2.0
// Short hand for graphs in tests: b.op("Add", {x, y}) returns output 0.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/tensor/tensor.h"

namespace treenail::test {

class GraphBuilder {
 public:
  GraphBuilder() : graph(std::make_shared<Graph>()) {}

  Node& node(std::string_view op, std::vector<Output> inputs, NamedAttrs attrs = {},
             std::string_view name = {}, std::vector<Node*> control = {}) {
    return graph->add(
        {.op = op, .name = name, .inputs = inputs, .attrs = attrs, .control_inputs = control});
  }
  Output op(std::string_view op, std::vector<Output> inputs, NamedAttrs attrs = {},
            std::string_view name = {}, std::vector<Node*> control = {}) {
    return {&node(op, std::move(inputs), std::move(attrs), name, std::move(control)), 0};
  }
  Output constant(const Tensor& value, std::string_view name = {}) {
    return op("Const", {}, {{"value", value}, {"dtype", value.dtype()}}, name);
  }
  Output placeholder(DType dtype, PartialShape shape, std::string_view name) {
    return op("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
  }
  Output variable(DType dtype, PartialShape shape, std::string_view name) {
    return op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}}, name);
  }
  Output read(Output handle, DType dtype, std::string_view name = {}) {
    return op("ReadVariableOp", {handle}, {{"dtype", dtype}}, name);
  }

  std::shared_ptr<Graph> graph;
};

inline Tensor floats(std::initializer_list<float> values) { return Tensor::vector<float>(values); }

}  // namespace treenail::test
