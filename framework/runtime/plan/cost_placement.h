// SPDX-License-Identifier: Apache-2.0
// Where a session's nodes run by what it costs (placement/cost_placer.h). Each plan is placed by
// itself, but state is where it was put first: a variable that one run initialises and another
// trains is on one device, the one that a run of the whole graph would have it on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/fork.h"
#include "framework/placement/cost_placer.h"

namespace treenail {

// Whether devices of the kind run the op, as the registered kernels have it.
struct HasKernelOn {
  bool operator()(const OpInstance& op, const std::string& kind) const;
};
inline constexpr HasKernelOn has_kernel_on;

class CostPlacements {
 public:
  CostPlacements(CostModel model, std::span<const PlacementDevice> devices, bool soft)
      : model_(std::move(model)), devices_(devices.begin(), devices.end()), soft_(soft) {}

  // Gives a place to all state of the session's graph that has none yet.
  void settle(const Graph& graph);
  // By node id, the number of a device. `home_of`: of what is given from elsewhere. Errors: as
  // place_by_cost().
  std::vector<int32_t> places(const Graph& graph, HomeOf home_of, FindFunction find);

 private:
  int32_t home(const Node& node);
  // With mutex_ held.
  void remember(const Graph& graph, std::span<const int32_t> places);

  const CostModel model_;
  const std::vector<PlacementDevice> devices_;
  const bool soft_;
  ForkMutex mutex_;  // guards what follows
  std::map<std::string, int32_t, std::less<>> homes_;
  int settled_nodes_ = 0;  // of the session's graph
};

}  // namespace treenail
