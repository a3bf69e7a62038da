// SPDX-License-Identifier: Apache-2.0
// What new nodes meet: name scope, device, control dependencies, gradient overrides. A thread has
// one such context per graph, so threads that build one graph at once do not enter each other's
// scopes. Nothing here owns a Python object: a thread may end when nobody may touch one any more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/graph/graph.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// One `with control_dependencies(...)`. A node that depends on one of `made` needs no edge from
// `inputs` of its own.
struct Controller {
  bool clears = false;  // control_dependencies(None): outer ones do not count
  std::vector<Node*> inputs;
  std::unordered_set<const Node*> made;
};

// How many contexts of the process ask for a device, or more, where a thread ended within: as long
// as there are none no call has to look for its own. Under the GIL.
inline int contexts_with_device = 0;

struct BuildingContext {
  std::string scope;                   // "" or "a/b/"
  std::string device;                  // set by ask_for_device()
  std::vector<std::string> colocated;  // nodes that new ones must run beside
  std::string container;               // of the state that new nodes name
  bool device_functions = false;       // Python code chooses the device of each new node
  std::vector<Controller> controllers;
  // {op type: name of a gradient rule} for the nodes added from now on.
  std::map<std::string, std::string> gradient_map;

  void ask_for_device(std::string_view name) {
    contexts_with_device += static_cast<int>(!name.empty()) - static_cast<int>(!device.empty());
    device = name;
  }
  bool empty() const {
    return scope.empty() && device.empty() && container.empty() && colocated.empty() &&
           !device_functions && controllers.empty() && gradient_map.empty();
  }
};

// A number that no other graph of this process has or had.
uint64_t new_context_id();
// This thread's context of the graph. Valid until another graph's is asked for.
BuildingContext& building_context(uint64_t graph_id);
// Forgets it: the graph is gone.
void drop_building_context(uint64_t graph_id);

}  // namespace treenail::python
