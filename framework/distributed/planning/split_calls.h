// SPDX-License-Identifier: Apache-2.0
// Calls, branches and loops of a placed graph whose functions have nodes on several tasks: each is
// run by the task that it is placed on, and gets functions of its own, cut for that task
// (cut_body.h). What a piece of another task calls is cut for that one in turn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/distributed/planning/cut_body.h"
#include "framework/placement/placement_device.h"

namespace treenail {

struct TasksToSplitOver {
  std::span<const PlacementDevice> devices;
  std::span<const int32_t> parts;      // by device, the number of its task
  std::span<const std::string> names;  // by task
  bool allow_soft_placement = false;
  int64_t most_nodes = 0;  // of all functions that are made
};

class CallSplitter {
 public:
  // `library`: gets the functions that are made. `facts`: of those there were before.
  CallSplitter(Graph& library, const FunctionFacts& facts, const TasksToSplitOver& tasks,
               GivePiece give)
      : library_(library), facts_(facts), tasks_(tasks), give_(give) {}

  // Of a whole graph; its nodes, fetches and targets are others then. Errors: as place() and
  // cut_body(); Unimplemented for a function that calls itself; ResourceExhausted.
  void split(PlacedGraph& whole);

 private:
  struct Site;
  struct Body;
  void split_calls(PlacedGraph& placed, const std::string& path, bool whole);
  bool split_call(PlacedGraph& placed, const std::unordered_set<const Node*>& awaited, Node& node,
                  const std::string& path);
  std::vector<bool> wanted_of(const PlacedGraph& placed,
                              const std::unordered_set<const Node*>& awaited,
                              const Node& node) const;
  void replace(PlacedGraph& placed, Node& node, const Site& site, NamedAttrs attrs);
  // The name of the function that takes its place for the site; its own where it stays whole.
  std::string function_for(const Site& site, const std::string& name,
                           const std::vector<bool>& wanted, const std::string& path);
  std::string cut(const Site& site, const Function& function, const std::vector<bool>& wanted,
                  const std::string& path);
  void copy_body(const Site& site, const Function& function, const std::vector<bool>& wanted,
                 Body& body) const;
  PlacedGraph placed(const Site& site, Body& body) const;
  std::vector<int32_t> places_in(
      const Graph& body, int32_t caller,
      const std::unordered_map<const Node*, StateSource>& arguments) const;
  void drop_vain_requests(PlacedGraph& body) const;
  void keep_lists(PlacedGraph& body, int32_t caller) const;
  // Whether a body, or what it calls, does: without that all is done where it is called, but for
  // what works on state.
  bool asks_for_devices(const Function& function);
  bool has_others(const PlacedGraph& body, int32_t caller) const;

  Graph& library_;
  const FunctionFacts& facts_;
  const TasksToSplitOver tasks_;
  const GivePiece give_;
  std::unordered_map<const Function*, bool> asking_;
  std::vector<const Function*> within_;  // those that are being cut
  int64_t nodes_ = 0;
};

}  // namespace treenail
