// SPDX-License-Identifier: Apache-2.0
// What a session holds. For session.cc and partial_run.cc.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/fork.h"
#include "framework/base/hash.h"
#include "framework/base/small_vector.h"
#include "framework/runtime/plan/cost_placement.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/arena_pool.h"
#include "framework/runtime/run/partial_run.h"
#include "framework/runtime/run/placement_log.h"
#include "framework/runtime/run/remote_session.h"
#include "framework/runtime/run/session.h"
#include "framework/runtime/run/signature.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {

struct Session::Impl {
  SessionOptions options;
  std::vector<Device*> devices;  // the host's CPUs first
  PlacementLog placements;
  std::unique_ptr<CostPlacements> by_cost;  // null: nodes run where they ask to
  std::shared_ptr<ResourceManager> resources;
  std::vector<std::unique_ptr<ArenaPool>> arenas;  // by device, in its memory

  std::shared_ptr<RemoteSession> remote;  // where a server runs what it is asked for
  std::atomic<bool> closed{false};

  ForkMutex mutex;  // guards what follows
  uint32_t generation = fork_generation();
  std::vector<Frame*> running;
  using Key = std::vector<int64_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return hash_bytes(key.data(), key.size() * sizeof(key[0]));
    }
  };
  std::unordered_map<Key, std::shared_ptr<Signature>, KeyHash> signatures;
  std::unordered_map<std::string, std::shared_ptr<PartialRun>> partial_runs;  // by handle
  uint64_t uses = 0;

  // In the child of a fork nothing runs yet, runs in parts are lost, and what a thread was changing
  // begins anew.
  std::unique_lock<ForkMutex> locked();
  void forget_oldest();

  Signature::Planning planning(const Graph& graph, const CalledBody* body = nullptr) {
    return {graph, *this, body};
  }
  void begin(Frame& frame, Signature& signature);
  void end(Frame& frame);
};

// A frame out of the plan's pool and arenas for it; of a run, in the session's list of what runs.
// Given back when the run ended well; a cancelled run's frame is dropped with its tokens.
class Session::FrameLease {
 public:
  // For a run. Errors: ResourceExhausted, FailedPrecondition in a closed session.
  FrameLease(Impl& session, Signature& signature, const Plan& plan);
  // For a body that a run calls. Errors: ResourceExhausted.
  FrameLease(Impl& session, const Plan& plan, RunScope& scope);
  ~FrameLease();
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  void take_frame();
  void take_arenas();
  void give_back_arenas();

  Impl& session_;
  const Plan& plan_;
  std::unique_ptr<Frame> frame_;
  SmallVector<Arena, 1> arenas_;  // by device, as far as they were had
};

// Errors: ResourceExhausted where the plan needs more than the run may hold.
void check_bytes(const Plan& plan, const RunOptions& options);

// A fetched value as its caller gets it.
Tensor fetched(const Frame& frame, int32_t slot);

}  // namespace treenail
