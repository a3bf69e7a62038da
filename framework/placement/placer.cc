// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <algorithm>
#include <unordered_map>

#include "framework/base/error.h"
#include "framework/graph/function_calls.h"
#include "framework/placement/companions.h"
#include "framework/placement/device_choice.h"

namespace treenail {
namespace {

constexpr int32_t kOpen = -1;

Error refusal(const Node& node, const std::string& text) {
  const std::string created = creation_text(node);
  return invalid_argument(error_prefix(node.type(), node.original_name()), text,
                          created.empty() ? "" : "\n", created);
}

class Placer {
 public:
  Placer(const Graph& graph, std::span<const PlacementDevice> devices, bool soft,
         HasKernel has_kernel, HomeOf home_of)
      : graph_(graph),
        devices_(devices),
        soft_(soft),
        has_kernel_(has_kernel),
        home_of_(home_of),
        companions_(graph),
        held_(companions_.groups().size()),
        places_(static_cast<size_t>(graph.num_nodes()), kOpen) {}

  std::vector<int32_t> run() {
    each([&](const Node& node) { set(node, first_place(node)); });
    for (size_t group = 0; group < companions_.groups().size(); ++group) place_together(group);
    // Of what makes a handle it is certain where it runs before who takes the handle follows, but
    // where companions of later nodes move.
    do {
      moved_ = false;
      each([&](const Node& node) {
        follow_state(node);
        check_kernel(node);
      });
    } while (moved_);
    each([&](const Node& node) {
      if (place_of(node) == kOpen && is_made_for_one(node)) join(node, *node.consumers()[0]);
    });
    std::replace(places_.begin(), places_.end(), kOpen, 0);
    return std::move(places_);
  }

 private:
  // Why companions are where they are: the first that asks for it, or whose state is there.
  struct Held {
    const Node* node = nullptr;
    bool by_state = false;
  };

  template <class F>
  void each(F&& f) {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      if (const Node* node = graph_.node(id)) f(*node);
    }
  }
  int32_t place_of(const Node& node) const { return places_[static_cast<size_t>(node.id())]; }
  void set(const Node& node, int32_t place) { places_[static_cast<size_t>(node.id())] = place; }

  const PlacementDevice& device(int32_t place) const {
    return devices_[static_cast<size_t>(place)];
  }
  const PlacementDevice& device_of(const Node& node) const {
    return device(std::max(place_of(node), 0));
  }

  // The first CPU of the task that the device is of; the first device where it has none.
  int32_t host_beside(int32_t place) const {
    const auto beside = [&](const PlacementDevice& other) {
      return other.is_host() && same_task(other.name, device(place).name);
    };
    const auto found = std::ranges::find_if(devices_, beside);
    return found == devices_.end() ? 0 : static_cast<int32_t>(found - devices_.begin());
  }

  // Whatever state it is given, it does nothing with it.
  static bool hands_on(const Node& node) {
    return calls_functions(node.op()) || node.type() == "_Retval";
  }

  int32_t first_place(const Node& node) {
    const int32_t asked = requested(node);
    if (hands_on(node)) return host_beside(std::max(asked, 0));
    const int32_t home = home_of_(node);
    return home == kNoHome ? asked : home;
  }

  // Of each request text one look.
  int32_t requested(const Node& node) {
    if (node.device().empty()) return kOpen;
    const auto [known, fresh] = requests_.try_emplace(node.device(), kOpen);
    if (fresh) known->second = find(node);
    return known->second;
  }

  static DeviceName request_of(const Node& node) {
    try {
      return parse_device_name(node.device());
    } catch (const Error& error) {
      throw error.with_prefix(error_prefix(node.type(), node.original_name()));
    }
  }

  int32_t find(const Node& node) const {
    const DeviceName request = request_of(node);
    if (const auto found = choose_device(devices_, request, soft_)) return *found;
    refuse(node, no_such_device(node.device(), "this session", devices_));
  }

  // On one device that satisfies all that any of them asks for. Whether what they ask for is there
  // may be soft, that they run together is not.
  void place_together(size_t number) {
    const std::vector<const Node*>& nodes = companions_.groups()[number];
    DeviceName all;
    std::vector<const Node*> asking;
    const Node* at_home = nullptr;
    for (const Node* node : nodes) {
      if (hands_on(*node)) continue;
      if (home_of_(*node) != kNoHome && at_home == nullptr) at_home = node;
      if (node->device().empty()) continue;
      const DeviceName request = request_of(*node);
      if (!agree(all, request)) refuse_together(*node, request, asking);
      all = merge_device_names(all, request);
      asking.push_back(node);
    }
    int32_t place = kOpen;
    if (at_home != nullptr) {
      place = place_of(*at_home);
      for (const Node* node : asking) {
        if (soft_ || satisfies(device(place).name, request_of(*node))) continue;
        refuse(*node,
               concat("cannot be placed on \"", node->device(), "\": \"", at_home->original_name(),
                      "\", with which it is colocated, is on ", to_text(device(place).name)));
      }
    } else if (!asking.empty()) {
      const auto found = choose_device(devices_, all, soft_);
      if (!found) refuse(*asking[0], no_such_device(to_text(all), "this session", devices_));
      place = *found;
    }
    if (!asking.empty()) held_[number] = {asking[0], false};
    set_together(nodes, place);
  }

  void set_together(const std::vector<const Node*>& nodes, int32_t place) {
    for (const Node* node : nodes) {
      if (!hands_on(*node)) set(*node, place);
    }
  }

  // Whether a device may satisfy both.
  static bool agree(const DeviceName& a, const DeviceName& b) {
    const auto same = [](const auto& x, const auto& y) { return !x || !y || *x == *y; };
    const auto same_text = [](const std::string& x, const std::string& y) {
      return x.empty() || y.empty() || x == y;
    };
    return same_text(a.job, b.job) && same(a.replica, b.replica) && same(a.task, b.task) &&
           same_text(a.type, b.type) && same(a.index, b.index);
  }

  [[noreturn]] static void refuse_together(const Node& node, const DeviceName& request,
                                           const std::vector<const Node*>& others) {
    const auto against = [&](const Node* other) { return !agree(request_of(*other), request); };
    const Node& other = **std::ranges::find_if(others, against);
    refuse(node, concat("cannot be placed on \"", node.device(), "\": \"", other.original_name(),
                        "\", with which it is colocated, asks for \"", other.device(), "\""));
  }

  // The node goes to what it works on, or to where it has a kernel (null), and with it its
  // companions, but for those that are held where they are.
  void move(const Node& node, int32_t place, const Node* handle) {
    const int32_t group = companions_.group_of(node);
    if (group < 0 || hands_on(node)) return set(node, place);
    Held& held = held_[static_cast<size_t>(group)];
    if (place_of(node) != place) {
      const bool firm = held.by_state || (held.node != nullptr && !soft_);
      if (firm && !(handle != nullptr && handle->type() == "_Arg" && !held.by_state))
        refuse_move(node, place, handle, held);
      set_together(companions_.groups()[static_cast<size_t>(group)], place);
      moved_ = true;
    }
    if (handle != nullptr && !held.by_state) held = {&node, true};
  }

  [[noreturn]] void refuse_move(const Node& node, int32_t place, const Node* handle,
                                const Held& held) const {
    const std::string why = handle == nullptr
                                ? "it has a kernel"
                                : concat("what it works on, \"", handle->original_name(), "\", is");
    const std::string there = held.by_state
                                  ? concat("works on state on ", to_text(device_of(node).name))
                                  : concat("asks for \"", held.node->device(), "\"");
    refuse(node,
           concat("cannot be placed on ", to_text(device(place).name), ", where ", why,
                  ": it is colocated with \"", held.node->original_name(), "\", which ", there));
  }

  // The CPU's are looked for when the plan is made.
  void check_kernel(const Node& node) {
    if (device_of(node).is_host()) return;
    if (node.op().def().view_of >= 0 || has_kernel_(node.op(), device_of(node).kind())) return;
    const bool may_move = soft_ || node.op().def().computes_sizes;
    if (may_move && !works_on_state(node)) return move(node, host_beside(place_of(node)), nullptr);
    refuse(node, no_kernel_there(node.op(), device_of(node).name, works_on_state(node)));
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
      } else if (device_of(handle).memory != device_of(node).memory) {
        refuse(node, state_in_two_memories(followed->original_name(), device_of(node).name,
                                           handle.original_name(), device_of(handle).name));
      }
    }
  }

  void follow(const Node& node, const Node& handle) {
    const int32_t there = std::max(place_of(handle), 0);
    const bool strict = !soft_ && handle.type() != "_Arg" && !node.device().empty();
    if (strict && place_of(node) != there) {
      refuse(node, concat("cannot be placed on \"", node.device(), "\": what it works on, \"",
                          handle.original_name(), "\", is on ", to_text(device(there).name)));
    }
    move(node, there, &handle);
  }

  void join(const Node& node, const Node& consumer) {
    const PlacementDevice& there = device_of(consumer);
    if (there.is_host() || has_kernel_(node.op(), there.kind())) set(node, place_of(consumer));
  }

  static bool is_made_for_one(const Node& node) {
    return node.inputs().empty() && node.num_outputs() == 1 && node.consumers().size() == 1;
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& text) {
    throw refusal(node, text);
  }

  const Graph& graph_;
  std::span<const PlacementDevice> devices_;
  const bool soft_;
  const HasKernel has_kernel_;
  const HomeOf home_of_;
  const Companions companions_;
  std::vector<Held> held_;  // by group
  bool moved_ = false;      // companions of a node
  std::vector<int32_t> places_;
  std::unordered_map<std::string, int32_t> requests_;
};

}  // namespace

Error state_is_elsewhere(const Node& node, const DeviceName& home) {
  return refusal(node,
                 concat("names state on ", to_text(home), ", which is no device of this session"));
}

std::vector<int32_t> place(const Graph& graph, std::span<const PlacementDevice> devices,
                           bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of) {
  return Placer(graph, devices, allow_soft_placement, has_kernel, home_of).run();
}

}  // namespace treenail
