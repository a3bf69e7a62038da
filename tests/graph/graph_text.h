// SPDX-License-Identifier: Apache-2.0
// Everything a graph file keeps of a graph, as text: two graphs of the same text are the same
// graph.
#pragma once

#include <string>

#include "framework/base/text.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"

namespace treenail::test {

inline std::string graph_text(const Graph& graph) {
  std::string text;
  if (graph.has_seed) text += concat("seed ", graph.seed, "\n");
  for (const auto& [name, f] : graph.functions()) {
    text += concat("function ", f->name, " doc \"", f->doc, "\" gradient \"", f->gradient, "\"");
    for (const FunctionArg& arg : f->inputs)
      text += concat(" in ", arg.name, ":", arg.dtype, arg.shape);
    for (const FunctionArg& arg : f->outputs)
      text += concat(" out ", arg.name, ":", arg.dtype, arg.shape);
    for (const std::string& node : f->input_nodes) text += " from " + node;
    for (const std::string& value : f->output_values) text += " gives " + value;
    text += f->body != nullptr ? " {\n" + graph_text(*f->body) + "}\n" : "\n";
  }
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node == nullptr) continue;
    text += concat(node->name(), " = ", node->type(), "(");
    for (const Output& input : node->inputs()) text += concat(input, " ");
    for (const Node* before : node->control_inputs()) text += concat("^", before->name(), " ");
    text += ")";
    if (!node->device().empty()) text += " on " + node->device();
    for (const std::string& name : node->colocated_with()) text += " beside " + name;
    for (size_t i = 0; i < node->op().attrs().size(); ++i) {
      text += concat(" ", node->op().def().attrs[i].name, "=", node->op().attrs()[i]);
    }
    for (size_t arg = 0; arg < node->op().def().inputs.size(); ++arg) {
      const auto [begin, end] = node->op().input_range(static_cast<int>(arg));
      text += concat(" ", begin, "-", end);
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      text += concat(" -> ", node->op().output_type(i), node->info(i).shape);
    }
    text += "\n";
  }
  return text;
}

}  // namespace treenail::test
