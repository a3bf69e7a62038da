// SPDX-License-Identifier: Apache-2.0
// What each node of one run did: when, on which thread, with how much memory and arithmetic. A run
// that is asked for it has a NodeTrace in its frame; the executor fills it, and without one looks
// at a null pointer.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/node_stats.h"

namespace treenail {

// Of a run and of the bodies that it called.
class RunTrace {
 public:
  explicit RunTrace(const Plan& plan);
  // Of the run's own plan.
  NodeTrace& own() { return own_; }
  // For a call of a body.
  std::unique_ptr<NodeTrace> begin_body(const Plan& plan) const;
  // Beyond a million nodes a loop's further iterations are left out.
  void end_body(std::shared_ptr<const Plan> plan, std::unique_ptr<NodeTrace> trace) noexcept;
  // Of what ran, in the order in which it began. Nodes of bodies are named by the calls around.
  std::vector<NodeStats> node_stats(const Plan& plan) const;

 private:
  struct Body {
    std::shared_ptr<const Plan> plan;
    std::unique_ptr<NodeTrace> trace;
  };
  NodeTrace own_;
  std::mutex mutex_;  // guards what follows
  std::vector<Body> bodies_;
  size_t noted_ = 0;  // nodes
};

}  // namespace treenail
