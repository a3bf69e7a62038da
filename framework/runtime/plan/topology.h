// SPDX-License-Identifier: Apache-2.0
// First stage of a plan: what one (feeds, fetches, targets) needs of the graph, on a private copy,
// independent of shapes. Cut at feeds (each becomes _Arg) and fetches (each pinned by _Retval),
// pruned, common subexpressions merged, constants folded, handles of state resolved, accesses to
// one variable ordered. Second stage: plan.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/device/device.h"
#include "framework/graph/graph.h"
#include "framework/runtime/state/variable.h"

namespace treenail {

class CostPlacements;
class FunctionCaller;
class FunctionFacts;
class ResourceManager;

struct TopologyOptions {
  bool fold_constants = true;
  bool merge_common_subexpressions = true;
  bool allow_soft_placement = false;
  bool fuse_elementwise = true;
  std::vector<Device*> devices = {&cpu_device()};  // of the session, a CPU first
  // Of a graph with functions.
  std::shared_ptr<FunctionCaller> functions = nullptr;
  const FunctionFacts* facts = nullptr;  // of these; null: every call stays a node
  // Of a function's body: who calls it, "a/b/", and per feed the handle of state that it is, or
  // nothing.
  std::string call_path = {};
  std::vector<Tensor> handles = {};
  DeviceName task = {};  // as SessionOptions
  // Null: what asks for no device is on the first. Bodies stay with their calls, there.
  CostPlacements* by_cost = nullptr;
};

struct Topology {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> order;    // canonical: errors are reported and accesses ordered by it
  std::vector<Node*> args;     // per feed; null when nothing needs it
  std::vector<Node*> retvals;  // per fetch
  std::vector<Node*> targets;  // the copies of the run's targets
  std::unordered_map<const Node*, Tensor>
      handles;  // nodes that only name state, and what they give
  // Stateful nodes that are targets, or that control edges of the program wait for: all that they
  // do is asked for, whichever of their values are read.
  std::unordered_set<const Node*> awaited;
  // Variables whose declared shape is partial and which no node here assigns: their present shape
  // is part of the key of a specialisation.
  std::vector<IntrusivePtr<Variable>> shape_variables;
  std::vector<Device*> devices;
  std::vector<int32_t> places;   // by node id: number of its device (placer.h)
  int64_t epoch = 0;             // of the user's graph
  bool fuse_elementwise = true;  // its specialisations may run element-wise nodes together
  std::shared_ptr<FunctionCaller> functions;
  std::string call_path;  // as in TopologyOptions

  // What the node does with the state behind its input i.
  Access access(const Node& node, int i) const;
  // The name of a random operation's counter.
  std::string counter_name(const Node& node) const { return call_path + node.original_name(); }
  int32_t place_of(const Node& node) const { return places[static_cast<size_t>(node.id())]; }
  Device& device_of(const Node& node) const {
    return *devices[static_cast<size_t>(place_of(node))];
  }
  // A memory goes by the number of its device, the host's by that of the first CPU.
  static constexpr int32_t kHostMemory = 0;
  int32_t memory(int32_t device) const {
    return devices[static_cast<size_t>(device)]->is_host() ? kHostMemory : device;
  }
  // Where a value lies.
  int32_t memory_of(const Output& value) const;
};

// Errors: as prepare() of the ops that name state. The caller holds graph.mutex() at least shared.
std::shared_ptr<const Topology> make_topology(const Graph& graph, std::span<const Output> feeds,
                                              std::span<const Output> fetches,
                                              std::span<Node* const> targets,
                                              ResourceManager& resources,
                                              const TopologyOptions& options);

// Its first two steps, for who asks what a run would be like. The private copy, cut and with common
// subexpressions merged; no node has a place. The caller holds the
// graph's lock as above.
std::shared_ptr<Topology> copy_for_topology(const Graph& graph, std::span<const Output> feeds,
                                            std::span<const Output> fetches,
                                            std::span<Node* const> targets,
                                            const TopologyOptions& options);
// Whether anything was folded.
bool fold_and_prune(Topology& topology, FunctionRef<bool(const Node&)> folds,
                    const TopologyOptions& options);

}  // namespace treenail
