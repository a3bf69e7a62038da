// SPDX-License-Identifier: Apache-2.0
// What is ready in one run: nodes of its plan and of the bodies that it calls, however deep, and
// bodies that have ended. Each of these is a unit of one region of the pool, but which unit takes
// what is seen when it begins; activations (activation.h) take turns. The thread that calls work()
// and helpers run units; while there are none only the caller sleeps.
//
// The region lives at least until closes() has said so, and that counts every unit in the queue or
// running and every asynchronous node that has not ended. So who ends a node may use the region as
// long as the node, or units that it has announced in units_left_, are among these; after that the
// whole run may be gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "framework/base/fork.h"
#include "framework/base/function_ref.h"
#include "framework/base/work_region.h"
#include "framework/device/memory_account.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

class RunQueue {
 public:
  // What units allocate counts for the account of this thread.
  explicit RunQueue(RunScope& scope) : scope_(scope), account_(MemoryAccount::current()) {}
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  RunScope& scope() const { return scope_; }
  MemoryAccount* account() const { return account_.get(); }
  // In a child of the process that began the run, which touches nothing that another thread may
  // have held.
  bool forked() const { return fork_generation() != born_; }
  // Whether some node has failed: all that counts then is whether one before it fails, too.
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // Runs units until nothing runs or waits, or, in parts, until as many nodes as are wanted are
  // done. Errors: FailedPrecondition in the child of a fork meanwhile.
  void work(int helpers, double cost_ns, FunctionRef<void()> poll);
  void want(int64_t nodes) { wanted_left_ = nodes; }

 private:
  friend class Activation;
  friend class Execution;
  static constexpr int kInterruptMs = 50;

  void run_unit() noexcept;
  // Of units that are counted: somebody comes for them, or work() will.
  void announce(uint32_t units);
  // The caller of these holds mutex_.
  void link(Activation& activation);
  Activation& take(int32_t& unit);
  bool closes();

  RunScope& scope_;
  const IntrusivePtr<MemoryAccount> account_;  // null: none
  const uint32_t born_ = fork_generation();
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // held for a few instructions, never across a kernel; guards the rest
  Activation* first_ = nullptr;  // of those with something ready, in the order of their turns
  Activation* last_ = nullptr;
  uint32_t queued_ = 0;      // ready, in all of them
  uint32_t units_left_ = 0;  // of the region: in the queue or running
  int64_t waiting_ = 0;      // asynchronous nodes that were started and have not ended
  int64_t wanted_left_ =
      1;               // what closes() waits for; one more than there are, where all is wanted
  bool open_ = false;  // the region takes units
  struct Unit {
    RunQueue& queue;
    void operator()() const { queue.run_unit(); }
  };
  const Unit unit_{*this};
  std::optional<WorkRegion> region_;  // last: its destructor waits for helpers
};

}  // namespace treenail
