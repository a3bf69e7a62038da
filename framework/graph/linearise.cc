// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/linearise.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/gradients.h"
#include "framework/graph/graph_emitter.h"
#include "framework/graph/import.h"
#include "framework/graph/recompute.h"
#include "framework/graph/row_gradients.h"

namespace treenail {
namespace {

FunctionArg argument_of(const Output& value) {
  const ValueInfo& info = value.node->info(value.index);
  return {value.node->name(), info.dtype, info.shape};
}

std::string name_of(const Output& value) {
  return value.index == 0 ? value.node->name() : to_text(value);
}

std::vector<Output> values_named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Output> values;
  values.reserve(names.size());
  for (const std::string& name : names) values.push_back(graph.find_output(name));
  return values;
}

// Such a node of a gradient reads no element of its input: where that is of the forward part, the
// node becomes a part of it, so that the input need not be kept.
bool tells_shape(const Node& node) {
  return node.type() == "Shape" || node.type() == "Size" || node.type() == "Rank";
}

// What of a body the backward part reads, walking from the gradients to where it is cut.
class Reads {
 public:
  Reads(Linearised& l, int forward_nodes) : l_(l), forward_nodes_(forward_nodes) {
    l_.reads_input.assign(l_.inputs.size(), false);
    l_.kept.clear();
  }

  void find() {
    for (const Output& gradient : l_.gradients)
      if (gradient.node != nullptr) visit(gradient);
    for (const Rows& rows : l_.rows) {
      if (rows.values.node == nullptr) continue;
      visit(rows.values);
      visit(rows.indices);
    }
    while (!stack_.empty()) {
      const Node* const node = stack_.back();
      stack_.pop_back();
      for (const Output& input : node->inputs()) visit(input);
    }
  }

 private:
  void visit(const Output& value) {
    if (std::ranges::find(l_.incoming, value) != l_.incoming.end()) return;
    const auto input = std::ranges::find(l_.inputs, value);
    if (input != l_.inputs.end()) {
      l_.reads_input[static_cast<size_t>(input - l_.inputs.begin())] = true;
    } else if (is_forward(*value.node)) {
      if (std::ranges::find(l_.kept, value) == l_.kept.end()) l_.kept.push_back(value);
    } else if (seen_.insert(value.node).second) {
      stack_.push_back(value.node);
    }
  }

  bool is_forward(const Node& node) const {
    if (node.type() == "Const") return false;  // made anew
    if (node.id() < forward_nodes_) {
      return l_.computed_once.empty() || l_.computed_once[static_cast<size_t>(node.id())];
    }
    return tells_shape(node) && node.input(0).node->id() < forward_nodes_ &&
           std::ranges::find(l_.inputs, node.input(0)) == l_.inputs.end() &&
           node.input(0).node->type() != "Const";
  }

  Linearised& l_;
  const int forward_nodes_;
  std::vector<const Node*> stack_;
  std::unordered_set<const Node*> seen_;
};

Linearised copy_of(const Function& function, const BodySetting& setting) {
  Linearised l;
  l.body = std::make_shared<Graph>();
  if (setting.recompute) {
    import_for_recomputation(*l.body, *function.body);
    for (int id = 0; id < l.body->num_nodes(); ++id)
      l.computed_once.push_back(!may_run_again(*l.body->node(id), setting.library));
  } else {
    import_graph(*l.body, *function.body);
  }
  l.inputs = values_named(*l.body, function.input_nodes);
  l.outputs = values_named(*l.body, function.output_values);
  const std::vector<Output> originals = values_named(*function.body, function.input_nodes);
  for (size_t i = 0; i < originals.size(); ++i) {
    if (const auto& handle = originals[i].node->info(originals[i].index).handle)
      l.body->set_handle(l.inputs[i], *handle);
  }
  l.forward_nodes = l.body->num_nodes();
  return l;
}

std::unique_ptr<GradientOverrides> overrides_for(const Function& function, const Linearised& l,
                                                 std::span<const Output> around,
                                                 const BodySetting& setting) {
  std::unique_ptr<GradientOverrides> found;
  if (setting.overrides != nullptr) found = setting.overrides->in_body(function, l.body, around);
  if (found == nullptr && function.rules != nullptr && !function.rules->names.empty()) {
    throw unimplemented("function \"", function.name,
                        "\" holds operations with gradients of the program's, which are not known "
                        "here");
  }
  return found;
}

// The gradients, of which rows stay such where they may.
void take(const std::vector<GraphGradient>& found, const BodyRequest& request,
          const RowSources& rows_of, Linearised& l) {
  GraphEmitter emitter(*l.body);
  emitter.set_place("gradients/", nullptr);
  size_t next = 0;
  for (size_t i = 0; i < l.inputs.size(); ++i) {
    l.gradients.emplace_back();
    l.rows.emplace_back();
    if (!request.wanted[i]) continue;
    const GraphGradient& gradient = found[next++];
    if (gradient.kind == Gradient::Kind::kSlices && !request.rows.empty() && request.rows[i]) {
      l.rows[i] = {gradient.values, gradient.indices, rows_of.is_sliced(l.inputs[i])};
    } else {
      l.gradients[i] = dense_output(gradient, emitter);
    }
  }
}

}  // namespace

void Linearised::find_reads() { Reads(*this, forward_nodes).find(); }

Output add_placeholder(Graph& graph, std::string_view name, DType dtype,
                       const PartialShape& shape) {
  const NamedAttrs attrs = {{"dtype", dtype}, {"shape", shape}};
  return {&graph.add({.op = "Placeholder", .name = name, .inputs = {}, .attrs = attrs}), 0};
}

Output add_placeholder_like(Graph& graph, std::string_view name, const Output& value) {
  const ValueInfo& info = value.node->info(value.index);
  const Output made = add_placeholder(graph, name, info.dtype, info.shape);
  if (info.handle != nullptr) graph.set_handle(made, *info.handle);
  return made;
}

Linearised linearise(const Function& function, const BodyRequest& request,
                     const BodySetting& setting) {
  Linearised l = copy_of(function, setting);
  std::vector<Output> ys, xs;
  RowSources rows_of;
  for (size_t i = 0; i < l.outputs.size(); ++i) {
    if (!request.has_gradient[i]) continue;
    ys.push_back(l.outputs[i]);
    const ValueInfo& info = l.outputs[i].node->info(l.outputs[i].index);
    l.incoming.push_back(add_placeholder(*l.body, "gradient", info.dtype, info.shape));
  }
  for (size_t i = 0; i < l.inputs.size(); ++i) {
    if (request.wanted[i]) xs.push_back(l.inputs[i]);
    if (!request.rows.empty() && request.rows[i]) rows_of.values.push_back(l.inputs[i]);
  }
  const auto overrides = overrides_for(function, l, request.around, setting);
  GradientOptions options{.grad_ys = l.incoming, .stop_gradients = l.inputs};
  options.overrides = overrides.get();
  options.library = &setting.library;
  if (!rows_of.values.empty()) options.rows_of = &rows_of;
  options.gate = setting.gate;
  const std::vector<GraphGradient> found = add_gradients(*l.body, ys, xs, options);
  if (overrides != nullptr) {
    l.captured = overrides->captured();
    l.rules = overrides->body_rules();
  }
  take(found, request, rows_of, l);
  l.find_reads();
  return l;
}

namespace {

// The wanted name, or the first free "wanted_N" where those before it are taken without a gap:
// found in few steps, since a process may trace thousands of functions of one name.
std::string free_name(const Graph& library, std::string_view wanted) {
  const auto name = [&](int64_t i) {
    return i == 0 ? std::string(wanted) : concat(wanted, "_", i);
  };
  int64_t taken = -1, free = 0;
  while (library.functions().contains(name(free))) taken = std::exchange(free, 2 * free + 1);
  while (free - taken > 1) {
    const int64_t middle = taken + (free - taken) / 2;
    (library.functions().contains(name(middle)) ? taken : free) = middle;
  }
  return name(free);
}

}  // namespace

std::string add_function(Graph& library, std::string_view wanted, std::shared_ptr<Graph> body,
                         std::span<const Output> inputs, std::span<const Output> outputs,
                         std::shared_ptr<const BodyRules> rules, bool may_grow) {
  auto function = std::make_shared<Function>();
  function->rules = std::move(rules);
  for (const Output& input : inputs) {
    function->inputs.push_back(argument_of(input));
    function->input_nodes.push_back(name_of(input));
  }
  for (const Output& output : outputs) {
    function->outputs.push_back(argument_of(output));
    function->output_values.push_back(to_text(output));
  }
  if (!may_grow) body->finalize();
  function->body = std::move(body);
  std::string name = free_name(library, wanted);
  function->name = name;
  library.functions().emplace(name, std::move(function));
  return name;
}

const Function& function_named(const Graph& library, std::string_view name) {
  const auto found = library.functions().find(name);
  if (found == library.functions().end() || found->second->body == nullptr)
    throw not_found("the graph has no function \"", name, "\"");
  return *found->second;
}

}  // namespace treenail
