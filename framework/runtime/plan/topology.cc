// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/topology.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/graph/passes/cse.h"
#include "framework/graph/passes/prune.h"
#include "framework/placement/placer.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/plan/fold.h"
#include "framework/runtime/plan/transfers.h"
#include "framework/runtime/plan/variable_order.h"
#include "framework/runtime/run/immediate.h"

namespace treenail {
namespace {

// Copies what is needed into a new graph. Feeds are looked up by (node id, output).
class Copier {
 public:
  Copier(const Graph& source, std::span<const Output> feeds, Topology& topology)
      : feeds_(feeds), topology_(topology), copies_(static_cast<size_t>(source.num_nodes())) {
    topology_.args.assign(feeds.size(), nullptr);
    for (size_t i = 0; i < feeds.size(); ++i) fed_.emplace(key(feeds[i]), i);
  }

  // The copy's value for a value of the source, copying all it needs.
  Output copy(Output value) {
    if (const auto it = fed_.find(key(value)); it != fed_.end()) return {arg(it->second), 0};
    return {copy(*value.node), value.index};
  }

  Node* copy(const Node& root) {
    if (Node* const fed = fed_placeholder(root)) return fed;
    // Iterative post-order: a node is copied once all it needs is.
    std::vector<const Node*> stack{&root};
    while (!stack.empty()) {
      const Node* node = stack.back();
      if (copies_[index(*node)] != nullptr) {
        stack.pop_back();
        continue;
      }
      const size_t depth = stack.size();
      for (const Output& input : node->inputs()) {
        if (!fed_.contains(key(input)) && copies_[index(*input.node)] == nullptr)
          stack.push_back(input.node);
      }
      for (const Node* before : node->control_inputs()) {
        if (fed_placeholder(*before) == nullptr && copies_[index(*before)] == nullptr)
          stack.push_back(before);
      }
      if (stack.size() != depth) continue;
      stack.pop_back();
      poll_interrupt();
      copies_[index(*node)] = copy_ready(*node);
    }
    return copies_[index(root)];
  }

 private:
  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  static uint64_t key(const Node& node, int output) {
    return (static_cast<uint64_t>(node.id()) << 32) | static_cast<uint32_t>(output);
  }
  static uint64_t key(const Output& value) { return key(*value.node, value.index); }

  Node* copy_ready(const Node& node) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) {
      const auto it = fed_.find(key(input));
      inputs.push_back(it != fed_.end() ? Output{arg(it->second), 0}
                                        : Output{copies_[index(*input.node)], input.index});
    }
    std::vector<Node*> control_inputs;
    for (Node* before : node.control_inputs()) {
      Node* const fed = fed_placeholder(*before);
      control_inputs.push_back(fed != nullptr ? fed : copies_[index(*before)]);
    }
    return &topology_.graph->add_copy(node, inputs, control_inputs);
  }

  // The argument that stands for a placeholder, which is done once it is fed; null for other nodes:
  // they run for who waits for them, though a value of theirs is fed.
  Node* fed_placeholder(const Node& node) {
    if (node.type() != "Placeholder") return nullptr;
    const auto it = fed_.find(key(node, 0));
    return it != fed_.end() ? arg(it->second) : nullptr;
  }

  Node* arg(size_t feed) {
    Node*& node = topology_.args[feed];
    if (node != nullptr) return node;
    const Output& value = feeds_[feed];
    const NamedAttrs attrs = {{"index", static_cast<int64_t>(feed)},
                              {"T", value.node->op().output_type(value.index)},
                              {"shape", value.node->info(value.index).shape}};
    NodeSpec spec{.op = "_Arg", .name = value.node->name(), .inputs = {}, .attrs = attrs};
    node = &topology_.graph->add(spec);
    topology_.graph->set_origin(*node, *value.node);
    if (const auto& handle = value.node->info(value.index).handle)
      topology_.graph->set_handle({node, 0}, *handle);
    return node;
  }

  std::span<const Output> feeds_;
  Topology& topology_;
  std::vector<Node*> copies_;  // by id of the source
  std::unordered_map<uint64_t, size_t> fed_;
};

// Nodes that only give handles of state, evaluated once: state is resolved when the plan is made.
// `given`: by feed.
void resolve_handles(Topology& topology, ResourceManager& resources,
                     std::span<const Tensor> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].defined() && topology.args[i] != nullptr)
      topology.handles[topology.args[i]] = given[i];
  }
  for (int id = 0; id < topology.graph->num_nodes(); ++id) {
    const Node* node = topology.graph->node(id);
    if (node == nullptr || node->num_outputs() != 1 || !node->inputs().empty() ||
        node->op().output_type(0) != DType::kResource || topology.handles.contains(node)) {
      continue;
    }
    try {
      topology.handles[node] = run_immediately(
          node->op(), {}, {&resources, node->original_name(), {}, &topology.device_of(*node)},
          nullptr)[0];
    } catch (const Error& error) {
      throw error.with_prefix(error_prefix(node->type(), node->original_name()));
    }
  }
}

void find_shape_variables(Topology& topology) {
  std::unordered_set<const Resource*> left_out;  // assigned, or found already
  for (const Node* node : topology.order) {
    for (int i = 0; i < node->op().num_inputs(); ++i) {
      if (topology.access(*node, i) != Access::kWrite) continue;
      if (const Resource* resource = resource_behind(node->input(i), topology.handles))
        left_out.insert(resource);
    }
  }
  for (const auto& [node, handle] : topology.handles) {
    auto* variable = dynamic_cast<Variable*>(handle.data<ResourceElement>()->object.get());
    if (variable == nullptr || variable->declared_shape().fully_known()) continue;
    if (left_out.insert(variable).second) topology.shape_variables.emplace_back(variable);
  }
}

}  // namespace

Access Topology::access(const Node& node, int i) const {
  return access_of(node, i, functions.get());
}

int32_t Topology::memory_of(const Output& value) const {
  const OpInstance& op = value.node->op();
  if (op.output_def(value.index).host || !is_plain(op.output_type(value.index))) return kHostMemory;
  return memory(place_of(*value.node));
}

std::shared_ptr<const Topology> make_topology(const Graph& graph, std::span<const Output> feeds,
                                              std::span<const Output> fetches,
                                              std::span<Node* const> targets,
                                              ResourceManager& resources,
                                              const TopologyOptions& options) {
  auto topology = std::make_shared<Topology>();
  topology->graph = std::make_unique<Graph>(Graph::Names::kAny);
  topology->epoch = graph.epoch();
  topology->fuse_elementwise = options.fuse_elementwise;
  topology->functions = options.functions;
  topology->call_path = options.call_path;
  Copier copier(graph, feeds, *topology);
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Output value = copier.copy(fetches[i]);
    const Output inputs[] = {value};
    const NamedAttrs attrs = {{"index", static_cast<int64_t>(i)}};
    Node& retval = topology->graph->add(
        {.op = "_Retval", .name = "_retval", .inputs = inputs, .attrs = attrs});
    topology->graph->set_origin(retval, *fetches[i].node);
    topology->retvals.push_back(&retval);
  }
  for (const Node* target : targets) topology->targets.push_back(copier.copy(*target));

  std::vector<Node*> keep = topology->targets;
  keep.insert(keep.end(), topology->retvals.begin(), topology->retvals.end());
  for (Node* arg : topology->args) {
    if (arg != nullptr) keep.push_back(arg);
  }
  if (options.merge_common_subexpressions) merge_common_subexpressions(*topology->graph, keep);
  const auto has_kernel = [](const OpInstance& op, const std::string& kind) {
    return op.def().any_device || KernelRegistry::instance().serves(op, kind);
  };
  const auto places = [&] {
    return place(*topology->graph, options.devices, options.allow_soft_placement, has_kernel);
  };
  topology->devices = options.devices;
  topology->places = places();  // before a node that asks for what is not there has been folded
  const auto folds = [&](const Node& node) { return topology->device_of(node).folds(); };
  const bool folded = options.fold_constants && fold_constants(*topology->graph, keep, folds) > 0;
  prune(*topology->graph, keep);
  if (folded) topology->places = places();
  resolve_handles(*topology, resources, options.handles);
  insert_copies(*topology);
  order_variable_accesses(*topology->graph, topology->handles, topology->functions.get());
  insert_waits(*topology);
  topology->order = topological_order(
      *topology->graph,
      early_updates(*topology->graph, topology->handles, topology->functions.get()));
  find_shape_variables(*topology);
  return topology;
}

}  // namespace treenail
