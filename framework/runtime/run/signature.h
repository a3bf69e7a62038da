// SPDX-License-Identifier: Apache-2.0
// What a session keeps of one combination of feeds, fetches and targets: the topology, and plans
// for the shapes that were met.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/plan/topology.h"
#include "framework/runtime/run/remote_session.h"
#include "framework/runtime/run/run_limits.h"
#include "framework/runtime/run/session.h"

namespace treenail {

// What a function's body is planned for (functions.h).
struct Session::CalledBody {
  std::shared_ptr<FunctionCaller> functions;  // as the body calls them
  const FunctionFacts& facts;
  const std::string& path;             // TopologyOptions::call_path
  const std::vector<Tensor>& handles;  // TopologyOptions::handles
};

class Session::Signature {
 public:
  // What plans are made of and for.
  struct Planning {
    const Graph& graph;
    Impl& session;
    const CalledBody* body;  // null: the session's own graph
  };

  // `args`: how the feeds of plan_for()'s plans come.
  Signature(std::vector<Output> feeds, std::vector<Output> fetches, std::vector<Node*> targets,
            Args args = Args::kAtOnce)
      : feeds(std::move(feeds)),
        fetches(std::move(fetches)),
        targets(std::move(targets)),
        args(args) {}

  const std::vector<Output> feeds;
  const std::vector<Output> fetches;
  const std::vector<Node*> targets;
  const Args args;

  // The plan for feeds of these shapes and variables as they are; `specialized`: it is for these
  // shapes alone. Errors: InvalidArgument for feeds whose shapes do not fit, FailedPrecondition
  // after close(), what making a plan throws, and when a limit of the run is reached.
  std::shared_ptr<const Plan> plan_for(const Planning& planning, std::span<const Tensor> given,
                                       RunLimits& limits, bool& specialized);
  // The plan for runs in parts, whose feeds may have any shape. Errors: the same.
  std::shared_ptr<const Plan> plan_in_parts(const Planning& planning, RunLimits& limits);
  // Back to before the first run, unless a thread is making a plan: it forgets for itself.
  void forget_unless_planning();

  std::atomic<double> cost_ns{0};
  uint64_t used = 0;  // guarded by the session's mutex: number of its last use
  // Guarded by the RemoteSession: for runs, and for runs in parts.
  std::shared_ptr<const RemotePlan> remote, remote_in_parts;

 private:
  using ShapeKey = std::vector<int64_t>;
  struct Specialization {
    ShapeKey key;
    std::shared_ptr<const Plan> plan;
  };
  struct ForgetInClosed;
  struct Miss {
    ShapeKey key;
    int times = 0;
  };

  // The mutex, or nothing where another thread holds it for longer than `patience`. In the child of
  // a fork plans that a thread was making are forgotten, their memory is lost.
  std::unique_lock<ForkMutex> locked(std::chrono::milliseconds patience);
  // With the topology of the graph as it is.
  std::unique_lock<ForkMutex> up_to_date(const Planning& planning, RunLimits& limits);
  // What follows is called with the mutex held.
  std::shared_ptr<const Plan> plan_for_any_shape(const Planning& planning, Args args);
  void forget_plans();
  void write_key(std::span<const Tensor> given, ShapeKey& key) const;
  std::shared_ptr<const Plan> kept_plan(const ShapeKey& key);
  // Whether this shape, which no kept plan fits, is to have a plan of its own.
  bool deserves_plan(const ShapeKey& key);
  void renew_topology(const Planning& planning);
  std::shared_ptr<const Plan> compile(const Planning& planning, std::span<const Tensor> given,
                                      const ShapeKey& key, bool& specialized);

  ForkMutex mutex_;  // guards what follows; held while a plan is made
  std::shared_ptr<const Topology> topology_;
  std::vector<Specialization> kept_;  // most recently used first
  std::shared_ptr<const Plan> generic_;
  std::shared_ptr<const Plan> in_parts_;
  int misses_ = 0;            // in a row
  std::vector<Miss> missed_;  // while the generic plan serves them: the last first
};

// Errors: InvalidArgument for a tensor of another dtype, or of a shape that the value cannot have.
void check_feed(const Output& value, const Tensor& tensor);

// Errors: FailedPrecondition, always.
[[noreturn]] void throw_session_closed();

}  // namespace treenail
