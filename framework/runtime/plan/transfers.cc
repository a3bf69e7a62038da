// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/transfers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
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

// The other memory in which the node wants its input, where there is one.
std::optional<int32_t> missing(const Topology& topology, const Node& node, int i) {
  const ArgDef& def = node.op().input_def(i);
  if (def.anywhere) return std::nullopt;
  const bool on_host = def.host || !is_plain(node.op().input_type(i));
  const int32_t wanted = on_host ? Topology::kHostMemory : topology.memory(topology.place_of(node));
  if (wanted == topology.memory_of(node.input(i))) return std::nullopt;
  return wanted;
}

class Copies {
 public:
  explicit Copies(Topology& topology) : topology_(topology) {}

  void run() {
    const int nodes = topology_.graph->num_nodes();
    for (int id = 0; id < nodes; ++id) {
      poll_interrupt();
      const Node* const node = topology_.graph->node(id);
      if (node == nullptr) continue;
      for (int i = 0; i < node->op().num_inputs(); ++i) {
        if (const auto memory = missing(topology_, *node, i)) copy(node->input(i), *memory);
      }
    }
    if (copies_.empty()) return;
    topology_.graph->rewire([&](const Node& consumer, int i) {
      const auto memory = missing(topology_, consumer, i);
      return memory ? copy(consumer.input(i), *memory) : consumer.input(i);
    });
  }

 private:
  // The value in that memory, the same one for all who want it there. Devices of different kinds
  // know nothing of each other: what passes between them passes by the host.
  Output copy(Output value, int32_t memory) {
    Output& known = copies_[{value.node->id(), value.index, memory}];
    if (known.node != nullptr) return known;
    const int32_t own = topology_.memory_of(value);
    const Node& origin = *value.node;
    if (own != Topology::kHostMemory && memory != Topology::kHostMemory &&
        device(own).kind() != device(memory).kind())
      value = copy(value, Topology::kHostMemory);
    const Output inputs[] = {value};
    const std::string name = concat(origin.name(), "/copy");
    known = {&add(topology_, {.op = "_Copy", .name = name, .inputs = inputs}, origin, memory), 0};
    return known;
  }

  const Device& device(int32_t place) const {
    return *topology_.devices[static_cast<size_t>(place)];
  }

  Topology& topology_;
  std::map<std::tuple<int, int, int32_t>, Output> copies_;  // by node, output and memory
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
      const int32_t place = topology_.place_of(*before);
      const bool queued = !topology_.device_of(*before).is_host();
      if (queued && place != topology_.place_of(node)) by_place[place].push_back(before);
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
