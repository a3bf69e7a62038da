// SPDX-License-Identifier: Apache-2.0
// What a worker keeps of a piece and of a step. For worker.cc and worker_parts.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "framework/device/memory_account.h"
#include "framework/distributed/grouped_receives.h"
#include "framework/distributed/worker.h"

namespace treenail {

struct Worker::Piece {
  Piece(const protocol::Program& program, IntrusivePtr<MemoryAccount> owner,
        std::shared_ptr<Graph> given, const SessionOptions& options)
      : account(std::move(owner)),
        charge(account.get(), program.graph.size()),
        graph(std::move(given)),
        session(graph, options) {
    const auto [feeds, fetches, targets] = protocol::values_of(program, *graph);
    signature = session.signature(feeds, fetches, targets);
    receives = grouped_receives(*graph);
  }

  const IntrusivePtr<MemoryAccount> account;
  const MemoryCharge charge;  // for the graph, besides its constants
  const std::shared_ptr<Graph> graph;
  GroupedReceives receives;
  Session session;
  std::shared_ptr<Session::Signature> signature;
  // A run in parts. Its exchange lasts until the master ends it: what the piece has sent waits
  // there although the piece has done all that it has to do.
  struct OpenRun {
    std::string handle;  // the session's
    std::shared_ptr<Exchange> exchange;
  };
  std::map<uint64_t, OpenRun> open_runs;  // by step; guarded by the worker's mutex
};

struct Worker::Step {
  Rendezvous rendezvous;
  int users = 0;  // guarded by the worker's mutex
};

// Whoever has to do with a step; its values and who waits for them keep it as well.
class Worker::StepUse {
 public:
  StepUse(Worker& worker, uint64_t number) : worker_(worker), number_(number) {
    const std::lock_guard lock(worker.mutex_);
    std::shared_ptr<Step>& step = worker.steps_[number];
    if (step == nullptr) step = std::make_shared<Step>();
    step_ = step;
    ++step_->users;
  }
  ~StepUse() {
    {
      const std::lock_guard lock(worker_.mutex_);
      --step_->users;
    }
    worker_.drop_idle(number_);
  }
  StepUse(const StepUse&) = delete;
  StepUse& operator=(const StepUse&) = delete;
  Rendezvous& rendezvous() { return step_->rendezvous; }

 private:
  Worker& worker_;
  const uint64_t number_;
  std::shared_ptr<Step> step_;
};

}  // namespace treenail
