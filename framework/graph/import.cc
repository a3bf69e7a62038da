// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/import.h"

#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/function_calls.h"

namespace treenail {
namespace {

class Importer {
 public:
  Importer(Graph& to, const Graph& from, const ImportOptions& options)
      : to_(to), options_(options) {
    for (const auto& [name, value] : options.replacements)
      replace(from.find_output(name), name, value);
  }

  // Null for a node that is left out.
  Node* add(const Node& node) {
    if (left_out(node)) return nullptr;
    std::vector<Output> inputs;
    for (const Output& input : node.inputs())
      inputs.push_back(values_.at({input.node, input.index}));
    std::vector<Node*> before;
    for (const Node* each : node.control_inputs()) {
      if (const auto at = nodes_.find(each); at != nodes_.end()) before.push_back(at->second);
    }
    const std::string name =
        options_.prefix.empty() ? node.name() : concat(options_.prefix, "/", node.name());
    Node& added = import_node(to_, node, name, inputs, before);
    nodes_.emplace(&node, &added);
    for (int i = 0; i < node.num_outputs(); ++i) values_.try_emplace({&node, i}, Output{&added, i});
    return &added;
  }
  Node* copy_of(const Node& node) const {
    const auto found = nodes_.find(&node);
    return found == nodes_.end() ? nullptr : found->second;
  }

 private:
  void replace(const Output& old_value, std::string_view name, const Output& value) {
    if (value.node == nullptr || &value.node->graph() != &to_ || value.index < 0 ||
        value.index >= value.node->num_outputs()) {
      throw invalid_argument("the replacement of \"", name, "\" (", value,
                             ") is not a value of the graph imported into");
    }
    const DType wanted = old_value.node->op().output_type(old_value.index);
    const DType got = value.node->op().output_type(value.index);
    if (wanted != got) {
      throw invalid_argument("\"", name, "\" has dtype ", wanted, ", its replacement ", value,
                             " has ", got);
    }
    values_[{old_value.node, old_value.index}] = value;
  }

  bool left_out(const Node& node) const {
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!values_.contains({&node, i})) return false;
    }
    return node.num_outputs() > 0;
  }

  Graph& to_;
  const ImportOptions& options_;
  std::map<std::pair<const Node*, int>, Output> values_;
  std::map<const Node*, Node*> nodes_;
};

}  // namespace

Node& import_node(Graph& to, const Node& node, std::string_view name,
                  std::span<const Output> inputs, std::span<Node* const> control_inputs) {
  const OpInstance& op = node.op();
  NamedAttrs attrs;
  for (size_t i = 0; i < op.attrs().size(); ++i)
    attrs.emplace_back(op.def().attrs[i].name, op.attrs()[i]);
  std::vector<int> sizes;
  for (size_t arg = 0; arg < op.def().inputs.size(); ++arg) {
    const auto [begin, end] = op.input_range(static_cast<int>(arg));
    sizes.push_back(end - begin);
  }
  Node& added = to.add({.op = node.type(),
                        .name = name,
                        .inputs = inputs,
                        .attrs = attrs,
                        .arg_sizes = sizes,
                        .control_inputs = control_inputs,
                        .device = node.device(),
                        .creation = node.creation(),
                        .colocated = node.colocated_with()});
  for (int i = 0; i < node.num_outputs(); ++i) {
    const PartialShape& known = node.info(i).shape;
    if (known.rank_known() && !(known == added.info(i).shape)) to.set_shape({&added, i}, known);
  }
  return added;
}

void copy_called_functions(const Graph& from, Graph& to) {
  std::vector<const Graph*> open{&to};
  while (!open.empty()) {
    const Graph& calling = *open.back();
    open.pop_back();
    for (int id = 0; id < calling.num_nodes(); ++id) {
      const Node* const node = calling.node(id);
      if (node == nullptr) continue;
      for (const std::string& name : functions_called(node->op())) {
        const auto found = from.functions().find(name);
        const bool there = found != from.functions().end();
        if (there && to.functions().insert(*found).second && found->second->body != nullptr)
          open.push_back(found->second->body.get());
      }
    }
  }
}

void colocate_copies(const Graph& from, std::string_view prefix,
                     FunctionRef<Node*(const Node&)> copy_of) {
  for (int id = 0; id < from.num_nodes(); ++id) {
    const Node* const node = from.node(id);
    if (node == nullptr || node->colocated_with().empty()) continue;
    Node* const copy = copy_of(*node);
    if (copy == nullptr) continue;
    std::vector<std::string> names;
    for (const std::string& name : node->colocated_with()) {
      const Node* const beside = from.find(name);
      const Node* const there = beside == nullptr ? nullptr : copy_of(*beside);
      names.push_back(there != nullptr ? there->name()
                      : prefix.empty() ? name
                                       : concat(prefix, "/", name));
    }
    copy->graph().set_colocated(*copy, names);
  }
}

std::map<std::string, Node*, std::less<>> import_graph(Graph& to, const Graph& from,
                                                       const ImportOptions& options) {
  for (const auto& [name, function] : from.functions()) {
    const auto at = to.functions().find(name);
    if (at != to.functions().end() && at->second != function) {
      throw already_exists("the graph has a function \"", name, "\" already");
    }
  }
  Importer importer(to, from, options);
  to.functions().insert(from.functions().begin(), from.functions().end());
  std::map<std::string, Node*, std::less<>> added;
  for (const Node* node : topological_order(from)) {
    if (Node* copy = importer.add(*node)) added.emplace(node->name(), copy);
  }
  colocate_copies(from, options.prefix, [&](const Node& node) { return importer.copy_of(node); });
  return added;
}

}  // namespace treenail
