// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <algorithm>
#include <unordered_map>

#include "framework/base/error.h"
#include "framework/graph/function_gradients.h"
#include "framework/placement/device_choice.h"

namespace treenail {
namespace {

constexpr int32_t kOpen = -1;

class Placer {
 public:
  Placer(const Graph& graph, std::span<Device* const> devices, bool soft, HasKernel has_kernel,
         HomeOf home_of)
      : graph_(graph),
        devices_(devices),
        soft_(soft),
        has_kernel_(has_kernel),
        home_of_(home_of),
        places_(static_cast<size_t>(graph.num_nodes()), kOpen) {}

  std::vector<int32_t> run() {
    each([&](const Node& node) { set(node, first_place(node)); });
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

  // Whatever state it is given, it does nothing with it.
  static bool hands_on(const Node& node) {
    return calls_functions(node.op()) || node.type() == "_Retval";
  }

  int32_t first_place(const Node& node) {
    const int32_t asked = requested(node);
    if (hands_on(node)) return 0;
    Device* const home = home_of_(node);
    if (home == nullptr) return asked;
    const auto found = std::ranges::find(devices_, home);
    if (found == devices_.end()) {
      refuse(node, concat("names state on ", to_text(home->name()),
                          ", which is no device of this session"));
    }
    return static_cast<int32_t>(found - devices_.begin());
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
    if (const auto found = choose_device(devices_, request, soft_)) return *found;
    refuse(node, no_such_device(node.device(), "this session", devices_));
  }

  // The CPU's are looked for when the plan is made.
  void check_kernel(const Node& node) {
    if (device_of(node).is_host()) return;
    const std::string& kind = device_of(node).kind();
    if (node.op().def().view_of >= 0 || has_kernel_(node.op(), kind)) return;
    if (soft_ && !works_on_state(node)) return set(node, 0);
    refuse(node, no_kernel_there(node.op(), device_of(node), works_on_state(node)));
  }

  static bool works_on_state(const Node& node) {
    return std::ranges::find(node.op().input_types(), DType::kResource) !=
           node.op().input_types().end();
  }

  // A handle is made before what takes it.
  void follow_state(const Node& node) {
    if (hands_on(node)) return;
    const Node* followed = nullptr;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.op().input_type(static_cast<int>(i)) != DType::kResource) continue;
      const Node& handle = *node.inputs()[i].node;
      if (followed == nullptr) {
        followed = &handle;
        follow(node, handle);
      } else if (std::max(place_of(handle), 0) != place_of(node) &&
                 !(device_of(handle).is_host() && device_of(node).is_host())) {
        refuse(node, state_in_two_memories(followed->original_name(), device_of(node),
                                           handle.original_name(), device_of(handle)));
      }
    }
  }

  void follow(const Node& node, const Node& handle) {
    const int32_t there = std::max(place_of(handle), 0);
    const bool strict = !soft_ && handle.type() != "_Arg";
    if (place_of(node) != kOpen && place_of(node) != there && strict) {
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
  const HomeOf home_of_;
  std::vector<int32_t> places_;
  std::unordered_map<std::string, int32_t> requests_;
};

}  // namespace

std::vector<int32_t> place(const Graph& graph, std::span<Device* const> devices,
                           bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of) {
  return Placer(graph, devices, allow_soft_placement, has_kernel, home_of).run();
}

}  // namespace treenail
