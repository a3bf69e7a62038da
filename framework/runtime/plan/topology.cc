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

// Copies what is needed into a new graph, in the order in which it was created, so that passes walk
// over what lies side by side. Feeds are looked up by (node id, output).
class Copier {
 public:
  Copier(const Graph& source, std::span<const Output> feeds, Topology& topology)
      : source_(source),
        feeds_(feeds),
        topology_(topology),
        needed_(static_cast<size_t>(source.num_nodes())),
        copies_(needed_.size()) {
    topology_.args.assign(feeds.size(), nullptr);
    for (size_t i = 0; i < feeds.size(); ++i) fed_.emplace(key(feeds[i]), i);
  }

  void need(const Output& wanted) {
    const Output value = behind(wanted);
    if (!fed_.contains(key(value))) need(*value.node);
  }
  void need(const Node& node) {
    if (fed_placeholder(node) == nullptr) needed_[index(node)] = true;
  }
  // After need() has told of all that is.
  void copy_needed() {
    for (size_t id = needed_.size(); id-- > 0;)
      if (needed_[id]) need_inputs(*source_.node(static_cast<int>(id)));
    for (size_t id = 0; id < needed_.size(); ++id)
      if (needed_[id]) copy(*source_.node(static_cast<int>(id)));
  }

  // The copy's value for a value of the source, or node for a node, that need() was told of.
  Output copy_of(const Output& wanted) {
    const Output value = behind(wanted);
    if (const auto it = fed_.find(key(value)); it != fed_.end()) return {arg(it->second), 0};
    return {copy_of(*value.node), value.index};
  }
  Node* copy_of(const Node& node) {
    Node* const fed = fed_placeholder(node);
    return fed != nullptr ? fed : copies_[index(node)];
  }

 private:
  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  static uint64_t key(const Node& node, int output) {
    return (static_cast<uint64_t>(node.id()) << 32) | static_cast<uint32_t>(output);
  }
  static uint64_t key(const Output& value) { return key(*value.node, value.index); }

  // The value itself, where a node is there for gradients alone.
  Output behind(Output value) const {
    while (value.node->type() == "CustomGradient" && value.node->control_inputs().empty() &&
           !fed_.contains(key(value)))
      value = value.node->input(value.index);
    return value;
  }

  // Called by falling number, so that only what an edge that was added later leads to has to be
  // looked at out of turn.
  void need_inputs(const Node& node) {
    stack_.push_back(&node);
    while (!stack_.empty()) {
      const Node* const reader = stack_.back();
      stack_.pop_back();
      const auto note = [&](const Node& other) {
        if (needed_[index(other)]) return;
        needed_[index(other)] = true;
        if (other.id() > node.id()) stack_.push_back(&other);
      };
      for (const Output& each : reader->inputs()) {
        const Output input = behind(each);
        if (!fed_.contains(key(input))) note(*input.node);
      }
      for (const Node* before : reader->control_inputs())
        if (fed_placeholder(*before) == nullptr) note(*before);
    }
  }

  // Iterative post-order: a node is copied once all it needs is, nearly always at once.
  void copy(const Node& root) {
    stack_.push_back(&root);
    while (!stack_.empty()) {
      const Node* node = stack_.back();
      if (copies_[index(*node)] != nullptr) {
        stack_.pop_back();
        continue;
      }
      const size_t depth = stack_.size();
      for (const Output& each : node->inputs()) {
        const Output input = behind(each);
        if (!fed_.contains(key(input)) && copies_[index(*input.node)] == nullptr)
          stack_.push_back(input.node);
      }
      for (const Node* before : node->control_inputs()) {
        if (fed_placeholder(*before) == nullptr && copies_[index(*before)] == nullptr)
          stack_.push_back(before);
      }
      if (stack_.size() != depth) continue;
      stack_.pop_back();
      poll_interrupt();
      copies_[index(*node)] = copy_ready(*node);
    }
  }

  Node* copy_ready(const Node& node) {
    std::vector<Output> inputs;
    for (const Output& each : node.inputs()) {
      const Output input = behind(each);
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

  const Graph& source_;
  std::span<const Output> feeds_;
  Topology& topology_;
  std::vector<bool> needed_;   // by id of the source
  std::vector<Node*> copies_;  // likewise
  std::vector<const Node*> stack_;
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
  for (const Output& fetch : fetches) copier.need(fetch);
  for (const Node* target : targets) copier.need(*target);
  copier.copy_needed();
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Output value = copier.copy_of(fetches[i]);
    const Output inputs[] = {value};
    const NamedAttrs attrs = {{"index", static_cast<int64_t>(i)}};
    Node& retval = topology->graph->add(
        {.op = "_Retval", .name = "_retval", .inputs = inputs, .attrs = attrs});
    topology->graph->set_origin(retval, *fetches[i].node);
    topology->retvals.push_back(&retval);
  }
  for (const Node* target : targets) topology->targets.push_back(copier.copy_of(*target));

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
