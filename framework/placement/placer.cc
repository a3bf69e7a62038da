// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr int32_t kOpen = -1;

std::string list_of(std::span<Device* const> devices) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < std::min(devices.size(), kShown); ++i)
    list += concat(i == 0 ? "" : ", ", to_text(devices[i]->name()));
  return devices.size() > kShown ? concat(list, ", ... (", devices.size(), " devices)") : list;
}

class Placer {
 public:
  Placer(const Graph& graph, std::span<Device* const> devices, bool soft, HasKernel has_kernel)
      : graph_(graph),
        devices_(devices),
        soft_(soft),
        has_kernel_(has_kernel),
        places_(static_cast<size_t>(graph.num_nodes()), kOpen) {}

  std::vector<int32_t> run() {
    each([&](const Node& node) { set(node, requested(node)); });
    // Of what makes a handle it is certain where it runs before who takes the handle follows.
    each([&](const Node& node) {
      follow_state(node);
      check_kernel(node);
    });
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

  const Device& device_of(const Node& node) const {
    return *devices_[static_cast<size_t>(std::max(place_of(node), 0))];
  }

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

  // The CPU's are looked for when the plan is made.
  void check_kernel(const Node& node) {
    if (device_of(node).is_host()) return;
    const std::string& kind = device_of(node).kind();
    if (node.op().def().view_of >= 0 || has_kernel_(node.op(), kind)) return;
    if (soft_ && !works_on_state(node)) return set(node, 0);
    std::string types;
    for (const DType type : node.op().input_types())
      types += concat(types.empty() ? "" : ", ", type);
    refuse(node, concat("cannot be placed on ", to_text(device_of(node).name()), ": ", kind,
                        " devices have no kernel for it with inputs (", types, ")",
                        soft_ ? ", and what it works on is there"
                              : "; allow_soft_placement runs it on the CPU"));
  }

  static bool works_on_state(const Node& node) {
    return std::ranges::find(node.op().input_types(), DType::kResource) !=
           node.op().input_types().end();
  }

  template <class Wanted>
  std::optional<int32_t> first(Wanted&& wanted) const {
    const auto found = std::find_if(devices_.begin(), devices_.end(),
                                    [&](const Device* device) { return wanted(device->name()); });
    if (found == devices_.end()) return std::nullopt;
    return static_cast<int32_t>(found - devices_.begin());
  }

  // A handle is made before what takes it.
  void follow_state(const Node& node) {
    const Node* followed = nullptr;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.op().input_type(static_cast<int>(i)) != DType::kResource) continue;
      const Node& handle = *node.inputs()[i].node;
      if (followed == nullptr) {
        followed = &handle;
        follow(node, handle);
      } else if (std::max(place_of(handle), 0) != place_of(node) &&
                 !(device_of(handle).is_host() && device_of(node).is_host())) {
        refuse(node,
               concat("works on state in the memory of two devices: \"", followed->original_name(),
                      "\" is on ", to_text(device_of(node).name()), ", \"", handle.original_name(),
                      "\" on ", to_text(device_of(handle).name())));
      }
    }
  }

  void follow(const Node& node, const Node& handle) {
    const int32_t there = std::max(place_of(handle), 0);
    if (place_of(node) != kOpen && place_of(node) != there && !soft_) {
      refuse(node, concat("cannot be placed on \"", node.device(), "\": what it works on, \"",
                          handle.original_name(), "\", is on ",
                          to_text(devices_[static_cast<size_t>(there)]->name())));
    }
    set(node, there);
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
  std::span<Device* const> devices_;
  const bool soft_;
  const HasKernel has_kernel_;
  std::vector<int32_t> places_;
  std::unordered_map<std::string, int32_t> requests_;
};

}  // namespace

std::vector<int32_t> place(const Graph& graph, std::span<Device* const> devices,
                           bool allow_soft_placement, HasKernel has_kernel) {
  return Placer(graph, devices, allow_soft_placement, has_kernel).run();
}

}  // namespace treenail
