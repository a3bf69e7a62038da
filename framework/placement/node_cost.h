// SPDX-License-Identifier: Apache-2.0
// How long a node takes on a device, and how large its values are: from a profile where it has the
// node on that kind of device, else from the floating-point operations that the op's definition
// counts, the bytes of inputs and outputs, and what the device does of either in a second. Shapes
// are those that the graph knows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/placement/profile.h"

namespace treenail {

struct DeviceSpeed {
  double flops_per_second = 0;
  double bytes_per_second = 0;  // of memory
  double seconds_per_node = 0;  // beside what it computes
  friend auto operator<=>(const DeviceSpeed&, const DeviceSpeed&) = default;
};

// What stands in for what nobody has said: one core of a CPU of these years, and an accelerator
// beside it.
DeviceSpeed usual_speed(const std::string& kind);

struct NodeCostOptions {
  std::shared_ptr<const PlacementProfile> profile;  // null: none
  int64_t unknown_dimension = 64;                   // what stands for an unknown one
  double trip_count = 10;                           // iterations of a loop
};

// Null where there is none of that name with a body.
using FindFunction = FunctionRef<const Function*(std::string_view name)>;

class NodeCosts {
 public:
  NodeCosts(const Graph& graph, FindFunction find, const NodeCostOptions& options);

  // Of the node and, of one that calls functions, of what it calls: a loop's body as often as it is
  // thought to go round.
  double seconds(const Node& node, const std::string& kind, const DeviceSpeed& speed);
  // Whether seconds() has it from the profile.
  bool measured(const Node& node, const std::string& kind) const;
  // Of the value, in a transfer or in memory; 0 for a handle.
  int64_t bytes(const Output& value) const;
  // Of state that the node names; 0 where it names none, or its size is not known.
  int64_t state_bytes(const Node& node) const;

 private:
  struct Work {
    double flops = 0, bytes = 0, nodes = 0;
  };
  struct Measured {
    double ns = 0;
    double count = 0;
  };
  Work work_of(const Node& node, int depth);
  Work work_of(const Function& function, int depth);
  Work work_of_call(const Node& node, int depth);
  double estimate(const Node& node, const DeviceSpeed& speed);
  void read_profile(const Graph& graph);
  void measure_calls(const Graph& graph);
  int64_t bytes_of(DType dtype, const PartialShape& shape) const;
  Shape filled(const PartialShape& shape) const;

  const FindFunction find_;
  const NodeCostOptions options_;
  std::map<std::string, std::unordered_map<const Node*, Measured>, std::less<>>
      measured_;  // by kind
  std::unordered_map<const Function*, Work> functions_;
};

// Whether the node computes nothing: another shape of its input, a handle, a constant, the read of
// a variable.
bool costs_nothing(const Node& node);

}  // namespace treenail
