// SPDX-License-Identifier: Apache-2.0
// A session runs parts of a graph and owns the state they share. A run is described by its feeds,
// fetches and targets (interned as a Signature); the first run of a signature compiles a plan
// (plan.h), later runs with the same shapes look up nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/device/device_name.h"
#include "framework/graph/graph.h"
#include "framework/runtime/run/node_stats.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class Exchange;       // kernel/kernel_exchange.h
class RemoteSession;  // remote_session.h
struct CostModel;
class FunctionCaller;
class ResourceManager;

struct SessionOptions {
  bool fold_constants = true;
  bool merge_common_subexpressions = true;
  // How many devices of each kind the session has at most. Without a number: of CPUs, which share
  // threads and memory, one; of others all that there are.
  std::map<std::string, int> device_count;
  // Says on standard error where each operation runs, when a plan first has it.
  bool log_placement = false;
  // A node that asks for a device that is not there runs on the CPU instead of being refused.
  bool allow_soft_placement = false;
  bool fuse_elementwise = true;
  // What nodes ask for comes first; null: what asks for nothing is on the first device, else where
  // this predicts runs to end first (plan/cost_placement.h).
  std::shared_ptr<const CostModel> placement;
  // Another session's state (same task); null: state of its own.
  std::shared_ptr<ResourceManager> resources;
  // Job and task that its devices go by in requests, where they are a cluster's; empty: the
  // devices' own names.
  DeviceName task;
  // Where a server runs what the session is asked for (distributed/client.h); null: this process.
  std::shared_ptr<RemoteSession> remote;
};

struct RunOptions {
  int64_t timeout_ms = 0;                    // <= 0: none; beyond it DeadlineExceeded
  const CancellationToken* token = nullptr;  // cancelled by somebody else; must outlive the run
  // Called about every 50 ms on the thread that called run(), between kernels and chunks; an
  // exception thrown there cancels the run and leaves run(). (Python: signal handlers.)
  void (*poll)() = nullptr;
  bool trace = false;            // RunMetadata::nodes is wanted
  int64_t most_bytes = 0;        // that the plan may hold (RunMetadata::peak_bytes); 0: any
  Exchange* exchange = nullptr;  // with other tasks' runs of the same step; outlives the run
};

struct DeviceMemory {
  std::string device;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;
};

// What a run needs and did, filled when asked for. All but nodes_executed is known before the
// first kernel runs, and stands here although the run then fails, for want of memory say.
struct RunMetadata {
  int64_t nodes_executed = 0;
  int64_t arena_bytes = 0;   // planned host memory: intermediate values and the kernels' scratch
  double cost_ns = 0;        // estimate of one run on one thread
  bool specialized = false;  // a plan for these very shapes was there or made
  // The most host memory that the run holds at once: the arena and the planned values that outlive
  // it (fetches). Without feeds and variables, which were there before, and without what nodes
  // below a data-dependent shape allocate when they run.
  int64_t peak_bytes = 0;
  std::vector<DeviceMemory> devices;  // the same of devices with memory of their own
  std::vector<NodeStats> nodes;  // of a run that did not fail, where RunOptions::trace asks for it
  int64_t begun_ns = 0;          // what their times count from, by this process's monotonic clock
  // By how much, at most, times of nodes of different tasks may be off against each other.
  int64_t clock_error_ns = 0;
};

class Session {
 public:
  explicit Session(std::shared_ptr<Graph> graph, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  class Signature;
  // How many are remembered, so that a program that fetches ever other sets of values does not grow
  // without bound.
  static constexpr size_t kMostSignatures = 512;
  // The same (feeds, fetches, targets) give the same Signature, as long as it is among those asked
  // for last. Errors: InvalidArgument (a value of another graph, a value fed twice, a feed of a
  // resource).
  std::shared_ptr<Signature> signature(std::span<const Output> feeds,
                                       std::span<const Output> fetches,
                                       std::span<Node* const> targets);

  // One tensor per fetch, in order. Errors: InvalidArgument (feed dtype or shape),
  // FailedPrecondition (uninitialised variable, closed session), Cancelled, DeadlineExceeded, and
  // whatever kernels raise, with op and node before the text. Several threads may run at once.
  std::vector<Tensor> run(const std::shared_ptr<Signature>& signature,
                          std::span<const Tensor> feeds, const RunOptions& options = {},
                          RunMetadata* metadata = nullptr);
  // By names: "x:0" feeds and fetches, "op" targets.
  std::vector<Tensor> run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                          const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {},
                          const RunOptions& options = {});
  // A run in parts: begins with nothing fed, and goes on as far as what is fed lets it in each call
  // of partial_run(). The handle names it until all of its feeds, fetches and targets have been
  // named there once, or the session is closed. It keeps the exchange. Errors: as run().
  std::string partial_run_setup(const std::shared_ptr<Signature>& signature,
                                const RunOptions& options = {},
                                std::shared_ptr<Exchange> exchange = nullptr);
  struct Part {
    std::vector<std::pair<Output, Tensor>> feeds;
    std::vector<Output> fetches;
    std::vector<Node*> targets;
  };
  // One tensor per fetch. Of `options` the poll and the token count: who is interrupted has ended
  // the whole run. Errors: InvalidArgument (an unknown handle; a value that was not in the set-up,
  // was named before, or needs a feed that has not been given), which leave the run as it was; as
  // run(), which end it.
  std::vector<Tensor> partial_run(const std::string& handle, const Part& part,
                                  const RunOptions& options = {});

  // Before it is over: what waits in it ends. Without effect where there is no such run any more.
  void end_partial_run(const std::string& handle);
  // What a fetch or a target of a run in parts waits for: feeds, by their positions in the
  // signature, and values of other tasks, by their keys.
  struct PartNeeds {
    std::vector<size_t> feeds;
    std::vector<std::string> received;
  };
  // Of each fetch, and then of each target. Errors: as partial_run_setup().
  std::vector<PartNeeds> part_needs(const std::shared_ptr<Signature>& signature,
                                    const RunOptions& options = {});

  // About how long one run took by estimate, in ns; 0 before the first. For the caller that decides
  // on releasing a lock.
  static double estimated_cost_ns(const Signature& signature);

  // Cancels what runs, and frees plans and, unless another open session shares them, variables:
  // what runs keeps its own until it has ended. Later runs throw FailedPrecondition "the session is
  // closed".
  void close();

  // The functions of a graph, also those it gets later, to be called outside of a run. The session
  // outlives it.
  std::shared_ptr<FunctionCaller> functions(std::shared_ptr<const Graph> library);

  // Their full names.
  std::vector<std::string> devices() const;
  // What the tasks of a server's cluster tell of themselves (placement/task_figures.h); "": none.
  std::string figures() const;
  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared_graph() const { return graph_; }
  ResourceManager& resources() const;

 private:
  struct Impl;
  class FrameLease;
  class Functions;
  class PartialRun;
  struct CalledBody;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treenail
