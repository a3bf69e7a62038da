// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/variable_order.h"

#include "framework/base/interrupt.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

struct Accesses {
  Node* last_write = nullptr;
  std::vector<Node*> reads;  // since last_write
};

class Orderer {
 public:
  Orderer(Graph& graph, const std::unordered_map<const Node*, Tensor>& handles,
          const FunctionCaller* functions)
      : graph_(graph),
        handles_(handles),
        functions_(functions),
        position_(static_cast<size_t>(graph.num_nodes())) {}

  void run() {
    const std::vector<Node*> order = topological_order(graph_);
    for (size_t i = 0; i < order.size(); ++i) position_[static_cast<size_t>(order[i]->id())] = i;
    for (Node* node : order) {
      poll_interrupt();
      for (int i = 0; i < node->op().num_inputs(); ++i) {
        const Access access = access_of(*node, i, functions_);
        if (access != Access::kRead && access != Access::kWrite) continue;
        const Resource* resource = resource_behind(node->input(i), handles_);
        if (resource == nullptr) continue;
        if (access == Access::kRead) {
          read(accesses_[resource], *node);
        } else {
          write(accesses_[resource], *node);
        }
      }
    }
  }

 private:
  size_t position(const Node& node) const { return position_[static_cast<size_t>(node.id())]; }

  void edge(Node& before, Node& after) {
    if (position(before) < position(after)) graph_.add_control_edge_unchecked(after, before);
  }

  void read(Accesses& accesses, Node& node) {
    if (accesses.last_write != nullptr) edge(*accesses.last_write, node);
    accesses.reads.push_back(&node);
  }

  void write(Accesses& accesses, Node& node) {
    if (accesses.last_write != nullptr) edge(*accesses.last_write, node);
    for (Node* reader : accesses.reads) {
      edge(*reader, node);
      wait_for_consumers(*reader, node);
    }
    accesses.reads.clear();
    accesses.last_write = &node;
  }

  // Consumers of the read value and of views of it. One that comes later than the write keeps its
  // share of the old bytes: the variable then moves to fresh memory (Variable::Write).
  void wait_for_consumers(Node& reader, Node& writer) {
    std::vector<Node*> sources{&reader};
    while (!sources.empty()) {
      Node* source = sources.back();
      sources.pop_back();
      const std::vector<Node*> consumers(source->consumers().begin(), source->consumers().end());
      for (Node* consumer : consumers) {
        if (consumer == &writer) continue;
        edge(*consumer, writer);
        if (consumer->op().def().view_of >= 0) sources.push_back(consumer);
      }
    }
  }

  Graph& graph_;
  const std::unordered_map<const Node*, Tensor>& handles_;
  const FunctionCaller* functions_;
  std::vector<size_t> position_;
  std::unordered_map<const Resource*, Accesses> accesses_;
};

}  // namespace

Access access_of(const Node& node, int i, const FunctionCaller* functions) {
  const OpInstance& op = node.op();
  const Access declared = op.input_def(i).access;
  if (functions == nullptr || declared != Access::kNone || op.input_type(i) != DType::kResource)
    return declared;
  const int first = op.input_range(static_cast<int>(op.def().inputs.size()) - 1).first;
  return i < first ? declared : functions->argument_access(op, i - first);
}

const Resource* resource_behind(Output value,
                                const std::unordered_map<const Node*, Tensor>& handles) {
  for (;;) {
    if (const auto it = handles.find(value.node); it != handles.end()) {
      return it->second.data<ResourceElement>()->object.get();
    }
    const int view_of = value.node->op().def().view_of;
    if (view_of < 0) return nullptr;
    value = value.node->input(view_of);
  }
}

std::vector<bool> early_updates(const Graph& graph,
                                const std::unordered_map<const Node*, Tensor>& handles,
                                const FunctionCaller* functions) {
  std::vector<bool> found(static_cast<size_t>(graph.num_nodes()));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node == nullptr || node->num_outputs() != 0) continue;
    bool writes = false, frees = false;
    for (int i = 0; i < node->op().num_inputs(); ++i) {
      const Output input = node->input(i);
      writes |= access_of(*node, i, functions) == Access::kWrite &&
                resource_behind(input, handles) != nullptr;
      frees |= !input.node->inputs().empty() && input.node->consumers().size() == 1;
    }
    found[static_cast<size_t>(id)] = writes && frees;
  }
  return found;
}

void order_variable_accesses(Graph& graph, const std::unordered_map<const Node*, Tensor>& handles,
                             const FunctionCaller* functions) {
  if (!handles.empty()) Orderer(graph, handles, functions).run();
}

}  // namespace treenail
