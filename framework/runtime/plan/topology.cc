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
#include "framework/runtime/plan/cost_placement.h"
#include "framework/runtime/plan/fold.h"
#include "framework/runtime/plan/function_facts.h"
#include "framework/runtime/plan/graph_copier.h"
#include "framework/runtime/plan/transfers.h"
#include "framework/runtime/plan/variable_order.h"
#include "framework/runtime/run/immediate.h"

namespace treenail {
namespace {

// The node that stands for a feed, made when it is first asked for.
Node* argument(Topology& topology, std::span<const Output> feeds, size_t feed) {
  Node*& node = topology.args[feed];
  if (node != nullptr) return node;
  const Output& value = feeds[feed];
  const NamedAttrs attrs = {{"index", static_cast<int64_t>(feed)},
                            {"T", value.node->op().output_type(value.index)},
                            {"shape", value.node->info(value.index).shape}};
  NodeSpec spec{.op = "_Arg", .name = value.node->name(), .inputs = {}, .attrs = attrs};
  node = &topology.graph->add(spec);
  topology.graph->set_origin(*node, *value.node);
  if (const auto& handle = value.node->info(value.index).handle)
    topology.graph->set_handle({node, 0}, *handle);
  return node;
}

// Of a handle that a function is given.
int32_t home_of_argument(const Topology& topology, const Node& node,
                         const TopologyOptions& options) {
  if (options.handles.empty() || node.type() != "_Arg" ||
      node.op().output_type(0) != DType::kResource)
    return kNoHome;
  const auto found = std::ranges::find(topology.args, &node);
  const auto feed = static_cast<size_t>(found - topology.args.begin());
  if (feed >= options.handles.size() || !options.handles[feed].defined()) return kNoHome;
  Device* const home = home_of(options.handles[feed]);
  if (home == nullptr) return kNoHome;
  const auto device = std::ranges::find(options.devices, home);
  if (device == options.devices.end()) throw state_is_elsewhere(node, home->name());
  return static_cast<int32_t>(device - options.devices.begin());
}

// What no pass may take away.
std::vector<Node*> kept_nodes(const Topology& topology) {
  std::vector<Node*> keep = topology.targets;
  keep.insert(keep.end(), topology.retvals.begin(), topology.retvals.end());
  for (Node* arg : topology.args) {
    if (arg != nullptr) keep.push_back(arg);
  }
  return keep;
}

std::vector<int32_t> places_by_cost(const Graph& whole, const Graph& copy, HomeOf home,
                                    const TopologyOptions& options) {
  options.by_cost->settle(whole);
  const auto find = [&](std::string_view name) -> const Function* {
    return options.facts == nullptr ? nullptr : options.facts->find(name);
  };
  return options.by_cost->places(copy, home, find);
}

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

// Before the plan has control edges of its own.
void find_awaited(Topology& topology) {
  const auto note = [&](const Node* node) {
    if (node->op().def().stateful) topology.awaited.insert(node);
  };
  for (int id = 0; id < topology.graph->num_nodes(); ++id) {
    if (const Node* node = topology.graph->node(id))
      std::ranges::for_each(node->control_inputs(), note);
  }
  std::ranges::for_each(topology.targets, note);
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

std::shared_ptr<Topology> copy_for_topology(const Graph& graph, std::span<const Output> feeds,
                                            std::span<const Output> fetches,
                                            std::span<Node* const> targets,
                                            const TopologyOptions& options) {
  auto topology = std::make_shared<Topology>();
  topology->graph = std::make_unique<Graph>(Graph::Names::kAny);
  topology->epoch = graph.epoch();
  topology->fuse_elementwise = options.fuse_elementwise;
  topology->functions = options.functions;
  topology->call_path = options.call_path;
  topology->args.assign(feeds.size(), nullptr);
  GraphCopier::Calls calls{options.facts};
  const auto feed = [&](size_t i) { return Output{argument(*topology, feeds, i), 0}; };
  GraphCopier copier(graph, feeds, *topology->graph, calls, feed);
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
  if (options.merge_common_subexpressions)
    merge_common_subexpressions(*topology->graph, kept_nodes(*topology));
  return topology;
}

bool fold_and_prune(Topology& topology, FunctionRef<bool(const Node&)> folds,
                    const TopologyOptions& options) {
  const std::vector<Node*> keep = kept_nodes(topology);
  const bool folded = options.fold_constants && fold_constants(*topology.graph, keep, folds) > 0;
  prune(*topology.graph, keep);
  return folded;
}

std::shared_ptr<const Topology> make_topology(const Graph& graph, std::span<const Output> feeds,
                                              std::span<const Output> fetches,
                                              std::span<Node* const> targets,
                                              ResourceManager& resources,
                                              const TopologyOptions& options) {
  const std::shared_ptr<Topology> topology =
      copy_for_topology(graph, feeds, fetches, targets, options);
  const auto home = [&](const Node& node) { return home_of_argument(*topology, node, options); };
  const std::vector<PlacementDevice> devices = placement_devices(options.devices, options.task);
  const auto places = [&] {
    return place(*topology->graph, devices, options.allow_soft_placement, has_kernel_on, home);
  };
  topology->devices = options.devices;
  topology->places = places();  // before a node that asks for what is not there has been folded
  const auto folds = [&](const Node& node) { return topology->device_of(node).folds(); };
  const bool folded = fold_and_prune(*topology, folds, options);
  if (options.by_cost != nullptr) {
    topology->places = places_by_cost(graph, *topology->graph, home, options);
  } else if (folded) {
    topology->places = places();
  }
  resolve_handles(*topology, resources, options.handles);
  find_awaited(*topology);
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
