// SPDX-License-Identifier: Apache-2.0
// Runs a plan on a frame. In canonical order on the calling thread (kernels split their own work
// over the pool), or as dependencies allow: where nodes side by side are faster, and where some can
// wait. Of several errors the first in canonical order is reported. What devices with queues were
// given is done, too, when a run ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/fork.h"
#include "framework/base/work_region.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/runtime/plan/plan.h"

namespace treenail {

// Feeds stand in the frame's arg slots; fetches are left in their slots. Errors: of kernels, with
// op and node before the text; Cancelled or DeadlineExceeded as the frame's token says. On return,
// normal or not, none of the plan's kernels runs, waits or is queued. Returns the number of plan
// nodes executed.
int64_t execute_plan(const Plan& plan, Frame& frame);

// The nodes of a frame, as dependencies allow: dependency counts and a queue of what is ready. The
// thread that calls run(), and helpers of the pool where nodes side by side are faster, take ready
// nodes, lowest position first; a cheap node runs at once on the thread that readied it. What is
// asynchronous is started, and whoever ends it puts its successors into the queue: while there is
// nothing else to do the caller of run() sleeps, and nobody else.
//
// After an error only synchronous nodes before it in canonical order still begin, so that the error
// reported is the first one whatever the timing; what waits is cancelled, and its errors count for
// nothing.
class Execution final : public Done::Target, public Failure::Target {
 public:
  Execution(const Plan& plan, Frame& frame);
  // Nothing of the frame may run or wait any more.
  ~Execution() = default;
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Runs all. How many nodes were executed.
  int64_t run();

  // For a frame whose arguments arrive one by one (Args::kOneByOne). The frame has the value of
  // feed i.
  void arrive(size_t feed);
  // Runs what has become ready, and returns when these plan nodes are done, although others may
  // wait for what is still to come.
  void run_until(std::span<const int32_t> wanted);
  // After cancelling the frame's token: returns when nothing runs or waits.
  void wind_up();

  void ended(int32_t node, std::exception_ptr error) noexcept override;
  void failed(int32_t node, std::exception_ptr error) noexcept override;
  bool superseded(int32_t node) const noexcept override {
    return frame_.token.cancelled() || error_position_.load(std::memory_order_acquire) < node;
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kNoError = std::numeric_limits<int32_t>::max();

  void work();
  void drain_queues();
  void run_unit() noexcept;
  int64_t run_chain(int32_t first);
  bool begin_node(const PlanNode& p, int32_t n);
  int32_t ready_successors(const PlanNode& p, int32_t n, int32_t mine);
  uint32_t push_successors(std::span<const int32_t> successors);
  void note_done(int32_t n);
  bool forked() const { return fork_generation() != born_; }
  void push_ready(int32_t n);
  int32_t pop_ready();
  bool closes();
  void fail(int32_t n);
  void fail_located(const PlanNode& p, int32_t n) noexcept;
  void fail_waiting(const PlanNode& p, int32_t n) noexcept;
  void look_after_interrupts() noexcept;

  const Plan& plan_;
  Frame& frame_;
  const uint32_t born_ = fork_generation();
  std::optional<TokenLink> link_;
  std::mutex mutex_;         // held for a few instructions, never across a kernel; guards the rest
  size_t ready_count_ = 0;   // of frame_.ready, a heap: the lowest position on top
  uint32_t units_left_ = 0;  // of the region: in the queue or running
  int64_t waiting_ = 0;      // asynchronous nodes that were started and have not ended
  int64_t wanted_left_ = 1;  // of `wanted_`; run() and wind_up() want one more than there are
  bool open_ = false;        // the region takes units
  int64_t executed_ = 0;
  std::vector<bool> done_, wanted_;  // by plan node; of a frame whose arguments arrive one by one
  std::atomic<int32_t> error_position_{kNoError};
  std::exception_ptr error_;
  struct Unit {
    Execution& execution;
    void operator()() const { execution.run_unit(); }
  };
  const Unit unit_{*this};
  std::optional<WorkRegion> region_;  // last: its destructor waits for helpers
};

}  // namespace treenail
