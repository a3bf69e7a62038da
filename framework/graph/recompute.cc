// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/recompute.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/function_calls.h"
#include "framework/graph/import.h"

namespace treenail {
namespace {

// The op that gives the numbers from a place in the stream on; nullptr for ops that are not split.
const char* numbers_op(const Node& node) {
  static constexpr std::pair<const char*, const char*> kOps[] = {
      {"RandomUniform", "StatelessRandomUniform"},
      {"RandomStandardNormal", "StatelessRandomNormal"},
      {"TruncatedNormal", "StatelessTruncatedNormal"},
      {"RandomUniformInt", "StatelessRandomUniformInt"}};
  const auto* const found =
      std::ranges::find_if(kOps, [&](const auto& each) { return node.type() == each.first; });
  return found == std::end(kOps) ? nullptr : found->second;
}

// inputs: the shape, then bounds.
Node& add_split(Graph& to, const Node& node, const char* op, std::vector<Output> inputs,
                std::span<Node* const> before) {
  NodeSpec spec;
  spec.device = node.device();
  spec.colocated = node.colocated_with();
  spec.creation = node.creation();
  spec.control_inputs = before;
  const NamedAttrs seeds = {{"seed", node.op().get_int("seed")},
                            {"seed2", node.op().get_int("seed2")}};
  const std::string name = node.name() + "/stream";
  spec.op = "RandomStream";
  spec.name = name;
  spec.inputs = {inputs.data(), 1};
  spec.attrs = seeds;
  Node& stream = to.add(spec);
  to.set_origin(stream, node);  // whose counter it goes on with
  inputs.insert(inputs.begin() + 1, Output{&stream, 0});
  const NamedAttrs dtype = {{"dtype", node.op().output_type(0)}};
  spec.op = op;
  spec.name = node.name();
  spec.inputs = inputs;
  spec.attrs = dtype;
  spec.control_inputs = {};
  return to.add(spec);
}

// Whether it may change some state, or gives other numbers each time.
bool has_effects(const OpInstance& op) {
  if (!has_state(op)) return false;
  if (op.def().random) return true;
  bool reads = false;
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (op.input_type(i) != DType::kResource) continue;
    if (op.input_def(i).access != Access::kRead) return true;
    reads = true;
  }
  return !reads;
}

// Functions that are being looked at count as good: those that call them decide.
bool is_repeatable(const std::string& name, const Graph& library,
                   std::map<std::string, bool>& known) {
  if (const auto [at, fresh] = known.emplace(name, true); !fresh) return at->second;
  const auto function = library.functions().find(name);
  if (function == library.functions().end()) return known[name] = false;
  bool good = true;
  const Graph& body = *function->second->body;
  for (int id = 0; good && id < body.num_nodes(); ++id) {
    const Node* const node = body.node(id);
    if (node == nullptr) continue;
    const std::vector<std::string> called = functions_called(node->op());
    good = called.empty() ? !has_effects(node->op())
                          : std::ranges::all_of(called, [&](const std::string& each) {
                              return is_repeatable(each, library, known);
                            });
  }
  known[name] = good;
  return good;
}

bool repeatable(const Node& node, const Graph& library) {
  const std::vector<std::string> called = functions_called(node.op());
  std::map<std::string, bool> known;
  if (!called.empty()) {
    return std::ranges::all_of(
        called, [&](const std::string& each) { return is_repeatable(each, library, known); });
  }
  // What it reads may have changed by then.
  return !has_state(node.op());
}

}  // namespace

void import_for_recomputation(Graph& to, const Graph& from) {
  std::map<const Node*, Node*> copies;
  for (const Node* node : topological_order(from)) {
    std::vector<Output> inputs;
    for (const Output& input : node->inputs())
      inputs.push_back({copies.at(input.node), input.index});
    std::vector<Node*> before;
    for (const Node* each : node->control_inputs()) before.push_back(copies.at(each));
    const char* const numbers = numbers_op(*node);
    Node& copy = numbers != nullptr ? add_split(to, *node, numbers, std::move(inputs), before)
                                    : import_node(to, *node, node->name(), inputs, before);
    if (node->original_name() != node->name()) to.set_origin(copy, *node);
    copies.emplace(node, &copy);
  }
}

bool may_run_again(const Node& node, const Graph& library) {
  if (!repeatable(node, library)) return false;
  return std::ranges::all_of(node.control_inputs(),
                             [&](const Node* before) { return may_run_again(*before, library); });
}

}  // namespace treenail
