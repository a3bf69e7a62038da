// SPDX-License-Identifier: Apache-2.0
// What a master keeps of a session and of a plan. For master.cc and master_run.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/distributed/cluster.h"
#include "framework/distributed/master.h"
#include "framework/placement/cost_placer.h"
#include "framework/placement/placement_device.h"

namespace treenail {

// What one worker has of a plan.
struct PlanPiece {
  TaskName task;
  uint64_t number = 0;
  std::vector<size_t> feeds, fetches;  // of the plan, in the piece's order
};

struct Master::Plan {
  std::vector<PlanPiece> pieces;
  size_t num_fetches = 0;
};

struct Master::Session {
  using Clock = std::chrono::steady_clock;

  protocol::Settings settings;
  std::string owner;
  Worker::Trust trust = Worker::Trust::kOthers;  // of what runs on the master's own task
  std::atomic<Clock::time_point> used{Clock::now()};
  std::map<TaskName, uint64_t> incarnations;  // of its tasks
  std::vector<PlacementDevice> devices;       // of the master's own task first
  std::shared_ptr<const CostModel> by_cost;   // null: what asks for no device is on the first
  std::mutex mutex;                           // guards what follows
  uint64_t last_plan = 0;
  std::map<uint64_t, std::shared_ptr<Plan>> plans;
};

}  // namespace treenail
