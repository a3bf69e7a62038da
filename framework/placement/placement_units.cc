// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placement_units.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "framework/graph/function_calls.h"
#include "framework/placement/companions.h"

namespace treenail {
namespace {

using Unit = PlacementUnits::Unit;
using Bound = PlacementUnits::Bound;

// Where the runtime has it: on the host of the task.
bool hands_on(const Node& node) {
  return calls_functions(node.op()) || node.type() == "_Retval" || node.type() == "_Arg" ||
         node.type() == "Placeholder";
}

class Builder {
 public:
  Builder(const Graph& graph, std::span<const PlacementDevice> devices,
          std::span<const int32_t> places, HasKernel has_kernel, HomeOf home_of)
      : graph_(graph),
        devices_(devices),
        places_(places),
        has_kernel_(has_kernel),
        home_of_(home_of),
        sets_(graph.num_nodes()),
        all_(devices.size()) {
    std::iota(all_.begin(), all_.end(), 0);
  }

  PlacementUnits run() {
    join_colocated(graph_, sets_);
    each([&](const Node& node) { join_state(node); });
    if (has_several_tasks()) each([&](const Node& node) { join_lists(node); });
    std::vector<std::vector<const Node*>> members(static_cast<size_t>(graph_.num_nodes()));
    each([&](const Node& node) {
      members[static_cast<size_t>(sets_.find(node.id()))].push_back(&node);
    });
    result_.unit_of.assign(members.size(), -1);
    for (const auto& nodes : members) {
      if (!nodes.empty()) add(nodes);
    }
    return std::move(result_);
  }

 private:
  template <class F>
  void each(F&& f) {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      if (const Node* node = graph_.node(id)) f(*node);
    }
  }

  // What hands handles on does nothing with what is behind them.
  void join_state(const Node& node) {
    if (calls_functions(node.op()) || node.type() == "_Retval") return;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.op().input_type(static_cast<int>(i)) == DType::kResource)
        sets_.join(node.id(), node.inputs()[i].node->id());
    }
  }

  bool has_several_tasks() const {
    return !std::ranges::all_of(devices_, [&](const PlacementDevice& device) {
      return same_task(device.name, devices_[0].name);
    });
  }

  // Between tasks numbers, truth values and strings pass, and nothing else (partition.h).
  void join_lists(const Node& node) {
    if (node.type() == "_Retval") return;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const DType type = node.op().input_type(static_cast<int>(i));
      if (!is_plain(type) && type != DType::kString && type != DType::kResource)
        sets_.join(node.id(), node.inputs()[i].node->id());
    }
  }

  void add(const std::vector<const Node*>& nodes) {
    Unit unit = unit_of(nodes);
    if (!unit.devices.empty()) return add(nodes, std::move(unit));
    for (const Node* node : nodes) add({node}, {{place_of(*node)}, Bound::kState});
  }
  void add(const std::vector<const Node*>& nodes, Unit unit) {
    for (const Node* node : nodes)
      result_.unit_of[static_cast<size_t>(node->id())] = static_cast<int32_t>(result_.units.size());
    result_.units.push_back(std::move(unit));
  }

  Unit unit_of(const std::vector<const Node*>& nodes) {
    Unit unit{all_, Bound::kFree};
    for (const Node* node : nodes) {
      if (const int32_t home = home_of_(*node); home != kNoHome) {
        keep(unit, Bound::kState, [&](int32_t d) { return d == home; });
      } else if (hands_on(*node)) {
        keep(unit, Bound::kHandsOn, [&](int32_t d) { return d == host_of(*node); });
      } else if (!node->device().empty()) {
        const std::vector<int32_t>& asked = satisfying(*node);
        keep(unit, Bound::kAsked, [&](int32_t d) { return std::ranges::binary_search(asked, d); });
      }
      if (!hands_on(*node)) keep_kernels(unit, *node);
    }
    return unit;
  }

  template <class F>
  static void keep(Unit& unit, Bound bound, F&& fits) {
    if (std::erase_if(unit.devices, [&](int32_t d) { return !fits(d); }) > 0 &&
        unit.bound == Bound::kFree)
      unit.bound = bound;
  }

  // Those that the request allows; where it was soft, the one that was found for it.
  const std::vector<int32_t>& satisfying(const Node& node) {
    const auto [known, fresh] = requests_.try_emplace(node.device());
    if (fresh) {
      const DeviceName request = parse_device_name(node.device());
      for (const int32_t d : all_)
        if (satisfies(devices_[static_cast<size_t>(d)].name, request)) known->second.push_back(d);
      if (known->second.empty()) known->second.push_back(place_of(node));
    }
    return known->second;
  }

  void keep_kernels(Unit& unit, const Node& node) {
    const OpDef& def = node.op().def();
    if (def.view_of >= 0 || !has_others_) return;
    std::string kind;
    bool serves = true;
    const size_t before = unit.devices.size();
    std::erase_if(unit.devices, [&](int32_t d) {
      const PlacementDevice& device = devices_[static_cast<size_t>(d)];
      if (device.is_host()) return false;
      if (device.kind() != kind) {
        kind = device.kind();
        serves = has_kernel_(node.op(), kind);
      }
      return !serves;
    });
    if (unit.devices.size() < before && unit.devices.size() == 1 && unit.bound == Bound::kFree)
      unit.bound = Bound::kKernel;
  }

  // The CPU of its task: what is fed and fetched lies there.
  int32_t host_of(const Node& node) const {
    const int32_t place = place_of(node);
    const bool fed = node.type() == "_Arg" || node.type() == "Placeholder";
    return fed && node.device().empty() ? 0 : place;
  }

  int32_t place_of(const Node& node) const { return places_[static_cast<size_t>(node.id())]; }

  const Graph& graph_;
  const std::span<const PlacementDevice> devices_;
  const std::span<const int32_t> places_;
  const HasKernel has_kernel_;
  const HomeOf home_of_;
  DisjointNodes sets_;
  std::vector<int32_t> all_;
  const bool has_others_ =
      !std::ranges::all_of(devices_, [](const PlacementDevice& d) { return d.is_host(); });
  std::unordered_map<std::string, std::vector<int32_t>> requests_;
  PlacementUnits result_;
};

}  // namespace

PlacementUnits placement_units(const Graph& graph, std::span<const PlacementDevice> devices,
                               std::span<const int32_t> places, HasKernel has_kernel,
                               HomeOf home_of) {
  return Builder(graph, devices, places, has_kernel, home_of).run();
}

}  // namespace treenail
