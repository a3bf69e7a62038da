// SPDX-License-Identifier: Apache-2.0
// What a master keeps of a session, of a plan and of a run in parts. For master.cc, master_run.cc
// and master_parts.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/distributed/cluster.h"
#include "framework/distributed/master.h"
#include "framework/distributed/planning/plan_needs.h"
#include "framework/placement/cost_placer.h"
#include "framework/placement/placement_device.h"

namespace treenail {

// What one worker has of a plan.
struct PlanPiece {
  TaskName task;
  uint64_t number = 0;
  std::vector<size_t> feeds, fetches, targets;  // of the plan, in the piece's order
  std::vector<std::string> sends;               // keys of what it sends, targets beyond those
};

struct Master::Plan {
  std::vector<PlanPiece> pieces;
  std::vector<PlanPiece> called;  // by others of its pieces, for what a body has on other tasks
  size_t num_feeds = 0, num_fetches = 0, num_targets = 0;
  std::mutex mutex;             // held while what follows is found out, once
  std::vector<EndNeeds> needs;  // of a plan that has been run in parts
};

// A run in parts that has not ended.
struct Master::OpenRun {
  OpenRun(std::shared_ptr<Plan> of, uint64_t number)
      : plan(std::move(of)), step(number), fed(plan->num_feeds), begun(plan->pieces.size()) {}

  const std::shared_ptr<Plan> plan;
  const uint64_t step;
  std::atomic<std::chrono::steady_clock::time_point> used{std::chrono::steady_clock::now()};
  std::mutex busy;                           // held by who runs a part; guards what follows
  std::vector<bool> fed;                     // by feed
  std::vector<bool> begun;                   // by piece
  std::set<std::pair<size_t, size_t>> done;  // pieces and numbers of their targets
};

// What one piece is asked for in a step.
struct PieceCall {
  const PlanPiece* piece;
  protocol::RunRequest request;  // of a part; the rest comes from the step
  std::vector<Tensor> feeds;
  std::vector<size_t> results;  // which of the step's results the piece gives, in its order
};
struct StepCalls {
  std::vector<PieceCall> calls;
  size_t num_results = 0;
  uint64_t number = 0;
  const std::string& session;
  int64_t timeout_ms = 0;
  bool trace = false;
};
// Steps of all masters: what one meets in a worker belongs to no other.
uint64_t next_step();

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
  std::map<uint64_t, std::shared_ptr<OpenRun>> open_runs;  // numbered as the plans
};

}  // namespace treenail
