// SPDX-License-Identifier: Apache-2.0
// Where nodes run by what it costs: what they ask for, their state and their companions first
// (placer.h), then the best simulated placement of all the rest (search.h). The same graph, devices
// and model give the same placement.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/placement/node_cost.h"
#include "framework/placement/placer.h"
#include "framework/placement/search.h"
#include "framework/placement/task_figures.h"

namespace treenail {

// Of all devices that satisfy the request.
struct DeviceModel {
  DeviceName devices;
  DeviceSpeed speed;
  int32_t slots = 1;         // nodes at once
  int64_t memory_bytes = 0;  // 0: no limit
  // Devices with equal hosts slow each other (contention.h); with "", none.
  double slowdown = 1;
  std::string host = {};
};

// From all devices that satisfy the one request to all that satisfy the other.
struct LinkModel {
  DeviceName from, to;
  double latency = 0;  // seconds
  double bytes_per_second = 0;
  PlacementProblem::Sharing sharing = PlacementProblem::Sharing::kPair;
};

// Of several models of a device, or link, the first counts; behind them what the profile has of
// it, what the tasks of a cluster tell, and usual ones. Where a model names no limit of memory the
// one counts that the task tells; so does its host where a model has a slowdown and names none, and
// in place of what the profile says.
struct CostModel {
  std::vector<DeviceModel> devices;
  std::vector<LinkModel> links;
  NodeCostOptions costs;
  std::shared_ptr<const ClusterFigures> told = nullptr;  // null: no cluster's
};

DeviceModel model_of(const CostModel& model, const DeviceName& device);
LinkModel model_of(const CostModel& model, const DeviceName& from, const DeviceName& to);

struct CostPlacement {
  // Why a node is where it is.
  enum class Reason : uint8_t {
    kAsked,      // it, or a companion, asks for a device
    kState,      // what it works on is there
    kHandsOn,    // it only hands values on, between functions, or in and out of the run
    kKernel,     // one device alone has a kernel for it and its companions
    kOnly,       // there is one device
    kPredicted,  // the best predicted placement has it there
  };
  std::vector<int32_t> places;     // by node id, the number of a device
  std::vector<const Node*> nodes;  // by task
  std::vector<Reason> reasons;     // by task
  std::vector<bool> measured;      // by task: its time there is from the profile
  PlacementProblem problem;        // tasks as in `nodes`
  PlacementChoice choice;
};
std::string to_text(CostPlacement::Reason reason);

// Errors: as place(); ResourceExhausted, with a table of the devices, where no placement fits their
// memory.
CostPlacement place_by_cost(const Graph& graph, std::span<const PlacementDevice> devices,
                            bool allow_soft_placement, HasKernel has_kernel, HomeOf home_of,
                            FindFunction find_function, const CostModel& model);

}  // namespace treenail
