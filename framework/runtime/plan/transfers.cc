// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/transfers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/interrupt.h"

namespace treenail {
namespace {

// Whether anything here runs on a device with memory of its own.
bool leaves_host(const Topology& topology) {
  return std::ranges::any_of(topology.places, [&](int32_t place) {
    return !topology.devices[static_cast<size_t>(place)]->is_host();
  });
}

// A node that stands beside `origin`, on a device.
Node& add(Topology& topology, const NodeSpec& spec, const Node& origin, int32_t place) {
  Node& node = topology.graph->add(spec);
  topology.graph->set_origin(node, origin);
  topology.places.resize(static_cast<size_t>(topology.graph->num_nodes()));
  topology.places[static_cast<size_t>(node.id())] = place;
  return node;
}

// The memory in which the node wants its input; none: any will do.
std::optional<int32_t> wanted_memory(const Topology& topology, const Node& node, int i) {
  const ArgDef& def = node.op().input_def(i);
  if (def.anywhere) return std::nullopt;
  if (def.host || !is_plain(node.op().input_type(i))) return Topology::kHostMemory;
  return topology.memory(topology.places[static_cast<size_t>(node.id())]);
}

class Copies {
 public:
  explicit Copies(Topology& topology) : topology_(topology) {}

  void run() {
    const int nodes = topology_.graph->num_nodes();
    for (int id = 0; id < nodes; ++id) {
      poll_interrupt();
      Node* const node = topology_.graph->node(id);
      if (node == nullptr) continue;
      for (int i = 0; i < node->num_outputs(); ++i) spread({node, i});
    }
  }

 private:
  // A copy for each memory that wants the value and is not its own.
  void spread(const Output& value) {
    const int32_t own = topology_.memory_of(value);
    std::vector<int32_t> wanted;
    for (const Node* consumer : value.node->consumers()) {
      for (int i = 0; i < consumer->op().num_inputs(); ++i) {
        if (!(consumer->input(i) == value)) continue;
        const std::optional<int32_t> memory = wanted_memory(topology_, *consumer, i);
        if (memory && *memory != own) wanted.push_back(*memory);
      }
    }
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    // Devices of different kinds know nothing of each other: what passes between them passes by
    // the host.
    std::optional<Output> on_host;
    for (const int32_t memory : wanted) {
      const bool by_host = own != Topology::kHostMemory && memory != Topology::kHostMemory &&
                           device(own).kind() != device(memory).kind();
      if ((by_host || memory == Topology::kHostMemory) && !on_host)
        on_host = copy(value, Topology::kHostMemory);
      const Output copied =
          memory == Topology::kHostMemory ? *on_host : copy(by_host ? *on_host : value, memory);
      topology_.graph->replace_uses(value, copied, [&](const Node& consumer, int input) {
        return wanted_memory(topology_, consumer, input) == memory;
      });
    }
  }

  Output copy(const Output& value, int32_t memory) {
    const Output inputs[] = {value};
    const std::string name = concat(value.node->name(), "/copy");
    return {&add(topology_, {.op = "_Copy", .name = name, .inputs = inputs}, *value.node, memory),
            0};
  }

  const Device& device(int32_t place) const {
    return *topology_.devices[static_cast<size_t>(place)];
  }

  Topology& topology_;
};

class Waits {
 public:
  explicit Waits(Topology& topology) : topology_(topology) {}

  void run() {
    const int nodes = topology_.graph->num_nodes();
    for (int id = 0; id < nodes; ++id) {
      poll_interrupt();
      if (Node* const node = topology_.graph->node(id)) wait_for_others(*node);
    }
  }

 private:
  // The edges that were there stay, which costs less than to take them out.
  void wait_for_others(Node& node) {
    std::unordered_map<int32_t, std::vector<Node*>> by_place;
    for (Node* before : node.control_inputs()) {
      const int32_t place = place_of(*before);
      const bool queued = !topology_.devices[static_cast<size_t>(place)]->is_host();
      if (queued && place != place_of(node)) by_place[place].push_back(before);
    }
    for (const auto& [place, before] : by_place)
      topology_.graph->add_control_edge_unchecked(node, wait(before, place));
  }

  // Of several nodes one for this reader alone; of one node the same for all who wait.
  Node& wait(const std::vector<Node*>& before, int32_t place) {
    if (before.size() > 1) return add_wait(before, place);
    Node*& shared = shared_[before[0]];
    if (shared == nullptr) shared = &add_wait(before, place);
    return *shared;
  }

  Node& add_wait(const std::vector<Node*>& before, int32_t place) {
    const std::string name = concat(before[0]->name(), "/wait");
    return add(topology_, {.op = "_Wait", .name = name, .inputs = {}, .control_inputs = before},
               *before.back(), place);
  }

  int32_t place_of(const Node& node) const {
    return topology_.places[static_cast<size_t>(node.id())];
  }

  Topology& topology_;
  std::unordered_map<const Node*, Node*> shared_;
};

}  // namespace

void insert_copies(Topology& topology) {
  if (leaves_host(topology)) Copies(topology).run();
}

void insert_waits(Topology& topology) {
  if (leaves_host(topology)) Waits(topology).run();
}

}  // namespace treenail
