// SPDX-License-Identifier: Apache-2.0
// One pass in topological order: inputs are folded before their consumers. A value may be known
// although an input is not computed (its shape is enough); then the edge to that input goes, unless
// something behind the input is ordered by control edges or side effects: then it stays as a
// control edge.
#include "framework/runtime/plan/fold.h"

#include <algorithm>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/run/immediate.h"

namespace treenail {
namespace {

class Folder {
 public:
  Folder(Graph& graph, std::span<Node* const> keep, FunctionRef<bool(const Node&)> folds)
      : graph_(graph),
        folds_(folds),
        kept_(static_cast<size_t>(graph.num_nodes())),
        ordered_(kept_.size()),
        made_(kept_.size()) {
    for (const Node* node : keep) kept_[index(*node)] = true;
  }

  int run() {
    int folded = 0;
    for (Node* node : topological_order(graph_)) {
      poll_interrupt();
      const std::vector<Tensor> values = known_values(*node);
      if (!values.empty()) {
        replace(*node, values);
        ++folded;
      }
      if (is_ordered(*node)) ordered_[index(*node)] = true;
    }
    return folded;
  }

 private:
  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }

  // As far as building the graph has told, and nothing has become a constant since.
  bool nothing_to_know(const Node& node) const {
    const auto known = [](const Output& input) {
      return input.node->info(input.index).constant != nullptr;
    };
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (node.info(i).constant != nullptr) return false;
    }
    return !std::ranges::all_of(node.inputs(), known) &&
           std::ranges::none_of(node.inputs(),
                                [&](const Output& input) { return made_[index(*input.node)]; });
  }

  // All outputs as constants, or empty where the node stays.
  std::vector<Tensor> known_values(const Node& node) const {
    const OpInstance& op = node.op();
    if (node.num_outputs() == 0 || node.type() == "Const" || op.def().stateful ||
        kept_[index(node)] || nothing_to_know(node))
      return {};
    std::vector<const ValueInfo*> inputs;
    for (const Output& input : node.inputs()) inputs.push_back(&input.node->info(input.index));
    // Anew, not node.info(): inputs may have become constants since the node was added.
    std::vector<ValueInfo> outputs(static_cast<size_t>(node.num_outputs()));
    try {
      infer_shapes(op, inputs, outputs);
    } catch (const Error&) {
      return {};  // it fails with this text when the plan is specialised or run
    }
    std::vector<Tensor> values;
    for (const ValueInfo& info : outputs) {
      if (!info.constant || static_cast<int64_t>(info.constant->bytes()) > kMaxFoldedBytes) break;
      values.push_back(*info.constant);
    }
    if (values.size() == outputs.size()) return values;
    // A constant folded before may not be among the nodes that `folds` knows, but none is computed.
    if (!same_everywhere(op) && !folds_(node)) return {};
    return fold_constant(op, inputs, outputs);
  }

  bool is_ordered(const Node& node) const {
    if (!node.control_inputs().empty()) return true;
    if (node.op().def().stateful && node.type() != "_Arg") return true;
    return std::any_of(node.inputs().begin(), node.inputs().end(),
                       [this](const Output& input) { return ordered_[index(*input.node)]; });
  }

  void replace(Node& node, const std::vector<Tensor>& values) {
    std::vector<Node*> before(node.control_inputs().begin(), node.control_inputs().end());
    for (const Output& input : node.inputs()) {
      if (!ordered_[index(*input.node)]) continue;
      if (input.node->type() == "Const") {
        before.insert(before.end(), input.node->control_inputs().begin(),
                      input.node->control_inputs().end());
      } else {
        before.push_back(input.node);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const NamedAttrs attrs = {{"value", values[i]}, {"dtype", values[i].dtype()}};
      Node& constant = graph_.add({.op = "Const",
                                   .name = node.name(),
                                   .inputs = {},
                                   .attrs = attrs,
                                   .control_inputs = before,
                                   .device = node.device(),
                                   .colocated = node.colocated_with()});
      graph_.set_origin(constant, node);
      graph_.replace_uses({&node, static_cast<int>(i)}, {&constant, 0});
      if (i == 0) graph_.move_control_uses(node, constant);
      ordered_.push_back(!before.empty());
      made_.push_back(true);
    }
  }

  Graph& graph_;
  const FunctionRef<bool(const Node&)> folds_;
  // By node id.
  std::vector<bool> kept_;
  std::vector<bool> ordered_;  // run after something that others can observe
  std::vector<bool> made_;     // constants that stand for others
};

}  // namespace

bool same_everywhere(const OpInstance& op) {
  return std::ranges::none_of(op.output_types(),
                              [](DType type) { return is_floating(type) || is_complex(type); });
}

int fold_constants(Graph& graph, std::span<Node* const> keep,
                   FunctionRef<bool(const Node&)> folds) {
  return Folder(graph, keep, folds).run();
}

}  // namespace treenail
