// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr int32_t kOpen = -1;

std::string list_of(std::span<const DeviceName> devices) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < std::min(devices.size(), kShown); ++i)
    list += concat(i == 0 ? "" : ", ", to_text(devices[i]));
  return devices.size() > kShown ? concat(list, ", ... (", devices.size(), " devices)") : list;
}

class Placer {
 public:
  Placer(const Graph& graph, std::span<const DeviceName> devices, bool soft)
      : graph_(graph),
        devices_(devices),
        soft_(soft),
        places_(static_cast<size_t>(graph.num_nodes()), kOpen) {}

  std::vector<int32_t> run() {
    each([&](const Node& node) { set(node, requested(node)); });
    each([&](const Node& node) { follow_state(node); });
    each([&](const Node& node) {
      if (place_of(node) == kOpen && is_made_for_one(node))
        set(node, place_of(*node.consumers()[0]));
    });
    std::replace(places_.begin(), places_.end(), kOpen, 0);
    return std::move(places_);
  }

 private:
  template <class F>
  void each(F&& f) {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      if (const Node* node = graph_.node(id)) f(*node);
    }
  }
  int32_t place_of(const Node& node) const { return places_[static_cast<size_t>(node.id())]; }
  void set(const Node& node, int32_t place) { places_[static_cast<size_t>(node.id())] = place; }

  // Of each request text one look.
  int32_t requested(const Node& node) {
    if (node.device().empty()) return kOpen;
    const auto [known, fresh] = requests_.try_emplace(node.device(), kOpen);
    if (fresh) known->second = find(node);
    return known->second;
  }

  int32_t find(const Node& node) const {
    DeviceName request;
    try {
      request = parse_device_name(node.device());
    } catch (const Error& error) {
      throw error.with_prefix(error_prefix(node.type(), node.original_name()));
    }
    if (const auto met = first([&](const DeviceName& d) { return satisfies(d, request); }))
      return *met;
    if (!soft_) {
      refuse(node, concat("cannot be placed on \"", node.device(), "\": this session has ",
                          list_of(devices_), "; allow_soft_placement runs it there"));
    }
    return first([&](const DeviceName& d) { return d.type == request.type; }).value_or(0);
  }

  template <class Wanted>
  std::optional<int32_t> first(Wanted&& wanted) const {
    const auto found = std::find_if(devices_.begin(), devices_.end(), wanted);
    if (found == devices_.end()) return std::nullopt;
    return static_cast<int32_t>(found - devices_.begin());
  }

  // A handle is made before what takes it.
  void follow_state(const Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Output& input = node.inputs()[i];
      if (node.op().input_type(static_cast<int>(i)) != DType::kResource) continue;
      const int32_t there = std::max(place_of(*input.node), 0);
      if (place_of(node) != kOpen && place_of(node) != there && !soft_) {
        refuse(node, concat("cannot be placed on \"", node.device(), "\": what it works on, \"",
                            input.node->original_name(), "\", is on ",
                            to_text(devices_[static_cast<size_t>(there)])));
      }
      return set(node, there);
    }
  }

  static bool is_made_for_one(const Node& node) {
    return node.inputs().empty() && node.num_outputs() == 1 && node.consumers().size() == 1;
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& text) {
    const std::string created = creation_text(node);
    throw invalid_argument(error_prefix(node.type(), node.original_name()), text,
                           created.empty() ? "" : "\n", created);
  }

  const Graph& graph_;
  std::span<const DeviceName> devices_;
  const bool soft_;
  std::vector<int32_t> places_;
  std::unordered_map<std::string, int32_t> requests_;
};

}  // namespace

std::vector<DeviceName> local_devices(int cpus) {
  std::vector<DeviceName> devices;
  for (int i = 0; i < cpus; ++i) devices.push_back({"localhost", 0, 0, "CPU", i});
  return devices;
}

std::vector<int32_t> place(const Graph& graph, std::span<const DeviceName> devices,
                           bool allow_soft_placement) {
  return Placer(graph, devices, allow_soft_placement).run();
}

}  // namespace treenail
