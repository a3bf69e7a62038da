// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/cost_placer.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/placement/placement_units.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;
using Bound = PlacementUnits::Bound;
using Reason = CostPlacement::Reason;

// A graph as a problem.
class ProblemBuilder {
 public:
  ProblemBuilder(const Graph& graph, std::span<const PlacementDevice> devices,
                 const PlacementUnits& units, FindFunction find, const CostModel& model)
      : graph_(graph),
        devices_(devices),
        units_(units),
        model_(model),
        costs_(graph, find, model.costs),
        task_of_(static_cast<size_t>(graph.num_nodes()), -1) {}

  void build(CostPlacement& result) {
    Problem& p = result.problem;
    add_devices(p);
    add_links(p);
    for (const PlacementUnits::Unit& unit : units_.units)
      p.units.push_back(
          {unit.devices.size() == devices_.size() ? std::vector<int32_t>() : unit.devices, 0});
    for (const Node* node : topological_order(graph_)) {
      poll_interrupt();
      task_of_[static_cast<size_t>(node->id())] = static_cast<int32_t>(result.nodes.size());
      result.nodes.push_back(node);
      add_task(p, *node);
    }
  }

  bool measured(const Node& node, int32_t device) const {
    return costs_.measured(node, devices_[static_cast<size_t>(device)].kind());
  }

 private:
  void add_devices(Problem& p) {
    std::map<int32_t, int32_t> memories;  // by the number that the description has
    std::map<std::pair<std::string, DeviceSpeed>, int32_t> classes;
    for (const PlacementDevice& device : devices_) {
      const DeviceModel model = model_of(model_, device.name);
      const auto memory =
          memories.try_emplace(device.memory, static_cast<int32_t>(memories.size()));
      if (memory.second) {
        p.capacities.push_back(0);
        first_in_.push_back(&device);
      }
      int64_t& capacity = p.capacities[static_cast<size_t>(memory.first->second)];
      capacity = std::max(capacity, model.memory_bytes);
      const auto known =
          classes.try_emplace({device.kind(), model.speed}, static_cast<int32_t>(classes.size()));
      if (known.second) classes_.emplace_back(device.kind(), model.speed);
      p.devices.push_back(
          {memory.first->second, model.slots, known.first->second, host_of(model), model.slowdown});
    }
    p.cost_classes = static_cast<int32_t>(classes_.size());
  }

  int32_t host_of(const DeviceModel& model) {
    if (model.host.empty()) return -1;
    return hosts_.try_emplace(model.host, static_cast<int32_t>(hosts_.size())).first->second;
  }

  void add_links(Problem& p) {
    std::map<std::array<double, 3>, int32_t> known;
    for (const PlacementDevice* from : first_in_) {
      for (const PlacementDevice* to : first_in_) {
        const LinkModel model = model_of(model_, from->name, to->name);
        const double per_byte = 1 / model.bytes_per_second;
        const auto [link, fresh] =
            known.try_emplace({model.latency, per_byte, static_cast<double>(model.sharing)},
                              static_cast<int32_t>(p.links.size()));
        if (fresh) p.links.push_back({model.latency, per_byte, model.sharing});
        p.link_of.push_back(link->second);
      }
    }
  }

  void add_task(Problem& p, const Node& node) {
    const auto number = static_cast<int32_t>(p.tasks.size());
    Problem::Task task;
    task.unit = units_.unit_of[static_cast<size_t>(node.id())];
    task.floats = costs_nothing(node);
    for (const Output& input : node.inputs()) take(p, number, task, value_of_[key(input)]);
    for (Node* before : node.control_inputs()) take(p, number, task, end_of(p, *before));
    for (const auto& [kind, speed] : classes_)
      p.seconds.push_back(task.floats ? 0 : costs_.seconds(node, kind, speed));
    p.units[static_cast<size_t>(task.unit)].state_bytes += costs_.state_bytes(node);
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Output output{const_cast<Node*>(&node), i};
      if (!is_read(output)) continue;
      Problem::Value value{number, costs_.bytes(output), 0, -1, {}};
      share_memory(p, node, i, value);
      value_of_[key(output)] = static_cast<int32_t>(p.values.size());
      task.outputs.push_back(static_cast<int32_t>(p.values.size()));
      p.values.push_back(std::move(value));
    }
    p.tasks.push_back(std::move(task));
  }

  // Another shape of an input is no memory more, and what is read of a variable is the variable's.
  void share_memory(const Problem&, const Node& node, int output, Problem::Value& value) const {
    const int viewed = node.op().def().view_of;
    if (viewed >= 0 && output == 0) {
      value.view_of = value_of_.at(key(node.input(viewed)));
    } else if (node.inputs().empty() || !costs_nothing(node)) {
      value.held = value.bytes;
    }
  }

  // A value without bytes: that the node has ended.
  int32_t end_of(Problem& p, Node& node) {
    const auto [known, fresh] =
        end_of_.try_emplace(node.id(), static_cast<int32_t>(p.values.size()));
    if (fresh) {
      const int32_t producer = task_of_[static_cast<size_t>(node.id())];
      p.values.push_back({producer, 0, 0, -1, {}});
      p.tasks[static_cast<size_t>(producer)].outputs.push_back(known->second);
    }
    return known->second;
  }

  static void take(Problem& p, int32_t number, Problem::Task& task, int32_t value) {
    if (std::ranges::find(task.inputs, value) != task.inputs.end()) return;
    task.inputs.push_back(value);
    p.values[static_cast<size_t>(value)].consumers.push_back(number);
  }

  static int64_t key(const Output& value) {
    return (static_cast<int64_t>(value.node->id()) << 32) | static_cast<uint32_t>(value.index);
  }

  const Graph& graph_;
  const std::span<const PlacementDevice> devices_;
  const PlacementUnits& units_;
  const CostModel& model_;
  NodeCosts costs_;
  std::vector<int32_t> task_of_;                              // by node id
  std::vector<const PlacementDevice*> first_in_;              // by memory
  std::vector<std::pair<std::string, DeviceSpeed>> classes_;  // of devices that cost the same
  std::map<std::string, int32_t> hosts_;
  std::unordered_map<int64_t, int32_t> value_of_;
  std::unordered_map<int, int32_t> end_of_;  // by node id
};

Reason reason_of(const PlacementUnits::Unit& unit, size_t devices) {
  if (devices == 1) return Reason::kOnly;
  if (unit.devices.size() > 1) return Reason::kPredicted;
  switch (unit.bound) {
    case Bound::kAsked:
      return Reason::kAsked;
    case Bound::kState:
      return Reason::kState;
    case Bound::kHandsOn:
      return Reason::kHandsOn;
    case Bound::kFree:
    case Bound::kKernel:
      break;
  }
  return Reason::kKernel;
}

[[noreturn]] void refuse_memory(const CostPlacement& found,
                                std::span<const PlacementDevice> devices) {
  const Problem& p = found.problem;
  std::string table = "no placement fits the memory of the devices; the nearest needs";
  for (size_t d = 0; d < devices.size(); ++d) {
    const auto memory = static_cast<size_t>(p.devices[d].memory);
    const int64_t capacity = p.capacities[memory];
    table += concat("\n  ", to_text(devices[d].name), ": ",
                    found.choice.timeline.peak_bytes[memory], " bytes at once, of which it has ",
                    capacity == 0 ? std::string("no limit") : concat(capacity));
  }
  throw resource_exhausted(table);
}

// Measured, or that of the cores that a CPU has. Memory serves some cores at once as it serves one.
DeviceSpeed speed_of(const CostModel& model, const DeviceName& device) {
  if (model.costs.profile != nullptr) {
    const auto& devices = model.costs.profile->devices();
    if (const auto found = devices.find(to_text(device)); found != devices.end()) {
      const PlacementProfile::DeviceFigures& figures = found->second;
      return {static_cast<double>(figures.flops_per_second),
              static_cast<double>(figures.bytes_per_second),
              1e-9 * static_cast<double>(figures.ns_per_node)};
    }
  }
  DeviceSpeed speed = usual_speed(device.type);
  if (model.told == nullptr || device.type != Device::kHostKind) return speed;
  constexpr double kCoresToMemory = 4;
  const double cores = model.told->cores(device);
  speed.flops_per_second *= cores;
  speed.bytes_per_second *= std::min(cores, kCoresToMemory);
  return speed;
}

// What it shares with others while they work, by what was measured of it.
void add_contention(DeviceModel& device, const CostModel& model) {
  if (model.costs.profile == nullptr) return;
  const auto& contention = model.costs.profile->contention();
  const auto found = contention.find(to_text(device.devices));
  if (found == contention.end()) return;
  device.slowdown = static_cast<double>(found->second.thousandths) / 1000;
  device.host = found->second.host;
}

// About what runs of sessions at servers see of them.
LinkModel usual_link(TaskLink link, const DeviceName& from, const DeviceName& to) {
  switch (link) {
    case TaskLink::kLentMemory:
      return {from, to, 5e-5, 4e9, Problem::Sharing::kPair};
    case TaskLink::kLoopback:
      return {from, to, 1.5e-4, 1e9, Problem::Sharing::kPair};
    case TaskLink::kNetwork:
      break;
  }
  return {from, to, 2.5e-4, 1.25e9, Problem::Sharing::kBoth};
}

}  // namespace

std::string to_text(CostPlacement::Reason reason) {
  switch (reason) {
    case Reason::kAsked:
      return "asked for";
    case Reason::kState:
      return "its state is there";
    case Reason::kHandsOn:
      return "hands values on";
    case Reason::kKernel:
      return "only kernel";
    case Reason::kOnly:
      return "only device";
    case Reason::kPredicted:
      break;
  }
  return "predicted";
}

DeviceModel model_of(const CostModel& model, const DeviceName& device) {
  const std::string told_host = model.told == nullptr ? "" : model.told->host(device);
  const int64_t told_memory = model.told == nullptr || device.type != Device::kHostKind
                                  ? 0
                                  : model.told->memory_bytes(device);
  for (const DeviceModel& each : model.devices) {
    if (!satisfies(device, each.devices)) continue;
    DeviceModel found = each;
    if (found.memory_bytes == 0) found.memory_bytes = told_memory;
    if (found.host.empty() && found.slowdown > 1) found.host = told_host;
    return found;
  }
  DeviceModel found{device, speed_of(model, device), 1, told_memory};
  add_contention(found, model);
  if (!found.host.empty() && !told_host.empty()) found.host = told_host;
  return found;
}

LinkModel model_of(const CostModel& model, const DeviceName& from, const DeviceName& to) {
  for (const LinkModel& each : model.links)
    if (satisfies(from, each.from) && satisfies(to, each.to)) return each;
  if (same_task(from, to)) return {from, to, 1e-5, 1.2e10, Problem::Sharing::kPair};  // PCIe
  if (model.costs.profile != nullptr) {
    const auto& links = model.costs.profile->links();
    const auto found = links.find({task_text(from), task_text(to)});
    if (found != links.end()) {
      return {from, to, 1e-9 * static_cast<double>(found->second.latency_ns),
              static_cast<double>(found->second.bytes_per_second), Problem::Sharing::kPair};
    }
  }
  if (model.told != nullptr) return usual_link(model.told->link(from, to), from, to);
  return {from, to, 5e-5, 1.25e9, Problem::Sharing::kPair};  // 10 Gbit/s
}

CostPlacement place_by_cost(const Graph& graph, std::span<const PlacementDevice> devices,
                            bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of,
                            FindFunction find_function, const CostModel& model) {
  CostPlacement result;
  result.places = place(graph, devices, allow_soft_placement, has_kernel, home_of);
  const PlacementUnits units = placement_units(graph, devices, result.places, has_kernel, home_of);
  ProblemBuilder builder(graph, devices, units, find_function, model);
  builder.build(result);
  result.choice = search_placement(result.problem);
  if (!result.choice.candidates[result.choice.chosen].fits) refuse_memory(result, devices);
  for (size_t t = 0; t < result.nodes.size(); ++t) {
    const Node& node = *result.nodes[t];
    const int32_t place = result.choice.places[t];
    result.places[static_cast<size_t>(node.id())] = place;
    const auto unit = static_cast<size_t>(units.unit_of[static_cast<size_t>(node.id())]);
    result.reasons.push_back(reason_of(units.units[unit], devices.size()));
    result.measured.push_back(builder.measured(node, place));
  }
  return result;
}

}  // namespace treenail
