// SPDX-License-Identifier: Apache-2.0
// Each node in the queue is a unit of the region, but which unit runs which node is seen when it
// begins. A node waits in one place at a time, once per run, so the frame's two words per node hold
// the queue and the threads' own stacks.
//
// The region lives at least until closes() has said so, and that counts every unit in the queue or
// running and every asynchronous node that has not ended. So who ends a node may use the region as
// long as the node, or units that it has announced in units_left_, are among these; after that the
// whole Execution may be gone.
#include "framework/runtime/run/executor.h"

#include <algorithm>
#include <functional>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/base/interrupt.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/run/node_run.h"

namespace treenail {
namespace {

// A node below this runs on the thread that readied it.
constexpr double kInlineNs = 5'000;
constexpr int kInterruptMs = 50;

bool is_cheap(const PlanNode& p) {
  return p.kind == PlanNode::Kind::kOrder || p.kind == PlanNode::Kind::kView || p.asynchronous ||
         p.queued || (p.kernel && p.kernel->cost_ns < kInlineNs);
}

}  // namespace

int64_t execute_plan(const Plan& plan, Frame& frame) {
  if (plan.in_order()) {
    const FpEnvironment ieee;
    return run_nodes_in_order(plan, frame);
  }
  return Execution(plan, frame).run();
}

Execution::Execution(const Plan& plan, Frame& frame) : plan_(plan), frame_(frame) {
  if (plan.can_wait) link_.emplace(&frame.token, frame.waits);
  if (!plan.arg_successors.empty()) {
    done_.resize(plan.nodes.size());
    wanted_.resize(plan.nodes.size());
  }
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    frame.waiting[n].store(plan.nodes[n].waits_for, std::memory_order_relaxed);
    if (plan.nodes[n].waits_for == 0) push_ready(static_cast<int32_t>(n));
  }
}

int64_t Execution::run() {
  work();
  if (error_) std::rethrow_exception(error_);
  frame_.token.check();
  return executed_;
}

void Execution::arrive(size_t feed) {
  const std::lock_guard lock(mutex_);
  push_successors(plan_.arg_successors[feed]);
}

void Execution::run_until(std::span<const int32_t> wanted) {
  {
    const std::lock_guard lock(mutex_);
    wanted_left_ = 0;
    for (const int32_t n : wanted) {
      const auto i = static_cast<size_t>(n);
      if (done_[i] || wanted_[i]) continue;
      wanted_[i] = true;
      ++wanted_left_;
    }
  }
  work();
  if (error_) std::rethrow_exception(error_);
  frame_.token.check();
}

void Execution::wind_up() {
  {
    const std::lock_guard lock(mutex_);
    wanted_left_ = 1;
  }
  work();
}

// Until closes() says so.
void Execution::work() {
  const FpEnvironment ieee;
  region_.emplace(unit_, plan_.side_by_side ? ThreadPool::instance().num_threads() - 1 : 0,
                  plan_.cost_ns);
  uint32_t ready = 0;
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    ready = units_left_ = static_cast<uint32_t>(ready_count_);
    close = closes();
  }
  if (close) {
    region_->close();
  } else if (ready > 0) {
    region_->add(ready, ready - 1);  // this thread takes one
  }
  if (!region_->run(kInterruptMs, [this] { look_after_interrupts(); })) {
    throw failed_precondition(
        "the process was forked while this run was in flight; the child cannot finish it");
  }
  region_.reset();
  drain_queues();
}

// The last of what the devices say comes before they are past all.
void Execution::drain_queues() {
  for (const PlanMemory& memory : plan_.memories) {
    if (!memory.used || memory.device->is_host()) continue;
    try {
      memory.device->wait();
    } catch (...) {
      if (error_ == nullptr) error_ = std::current_exception();
    }
  }
}

void Execution::run_unit() noexcept {
  int32_t n = kNone;
  {
    const std::lock_guard lock(mutex_);
    n = pop_ready();
  }
  const int64_t executed = run_chain(n);
  if (forked()) return;  // nothing that another thread may have held is touched in the child
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    executed_ += executed;
    --units_left_;
    close = closes();
  }
  if (close) region_->close();
}

// The caller holds mutex_, and closes the region where this is true.
bool Execution::closes() {
  const bool enough = waiting_ == 0 || (wanted_left_ == 0 && error_ == nullptr);
  if (!open_ || units_left_ > 0 || !enough) return false;
  open_ = false;
  return true;
}

// The node, then what it readied: the cheap ones here at once, the others through the queue. How
// many nodes ran.
int64_t Execution::run_chain(int32_t first) {
  int64_t executed = 0;
  int32_t mine = first;  // top of a stack linked through frame_.below
  frame_.below[static_cast<size_t>(first)] = kNone;
  while (mine != kNone) {
    const int32_t n = mine;
    mine = frame_.below[static_cast<size_t>(n)];
    const PlanNode& p = plan_.nodes[static_cast<size_t>(n)];
    const int32_t failed = error_position_.load(std::memory_order_acquire);
    if (n > failed || (p.asynchronous && failed != kNoError)) continue;
    bool ran = false;
    try {
      frame_.token.check();
      poll_interrupt();
      ran = begin_node(p, n);
    } catch (...) {
      if (forked()) return executed;
      fail(n);
      continue;
    }
    // A kernel may fork (a plugin's, or a signal handler on the way).
    if (forked()) return executed;
    if (!ran) continue;
    ++executed;
    mine = ready_successors(p, n, mine);
  }
  return executed;
}

// Whether the node has run; an asynchronous one says itself when it has.
bool Execution::begin_node(const PlanNode& p, int32_t n) {
  if (!p.asynchronous) {
    if (p.queued) {
      enqueue_node(plan_, p, frame_, Failure(*this, n));
    } else {
      run_node(plan_, p, frame_);
    }
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    ++waiting_;
  }
  try {
    start_node(plan_, p, frame_, Done(*this, n));
  } catch (...) {
    ended(n, std::current_exception());
  }
  return false;
}

// `mine` with the cheap ones on top.
int32_t Execution::ready_successors(const PlanNode& p, int32_t n, int32_t mine) {
  uint32_t queued = 0;
  if (!done_.empty()) {
    const std::lock_guard lock(mutex_);
    note_done(n);
  }
  for (const int32_t next : p.successors) {
    if (frame_.waiting[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    if (is_cheap(plan_.nodes[static_cast<size_t>(next)])) {
      frame_.below[static_cast<size_t>(next)] = mine;
      mine = next;
    } else {
      const std::lock_guard lock(mutex_);
      push_ready(next);
      ++units_left_;
      ++queued;
    }
  }
  // This thread takes one itself, unless it goes on with cheap nodes first.
  if (queued > 0) region_->add(queued, queued - (mine == kNone ? 1 : 0));
  return mine;
}

void Execution::ended(int32_t n, std::exception_ptr error) noexcept {
  if (forked()) return;
  const PlanNode& p = plan_.nodes[static_cast<size_t>(n)];
  try {
    if (error != nullptr) std::rethrow_exception(error);
    finish_node(plan_, p, frame_);
  } catch (...) {
    error = std::current_exception();
    fail_waiting(p, n);
  }
  uint32_t queued = 0;
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    if (error == nullptr) {
      ++executed_;
      if (!done_.empty()) note_done(n);
      queued = push_successors(p.successors);
    }
    if (!open_) return;
    units_left_ += queued;
    close = closes();
  }
  if (queued > 0) region_->add(queued);
  if (close) region_->close();
}

// What a device finds when the node has ended here already.
void Execution::failed(int32_t n, std::exception_ptr error) noexcept {
  if (forked()) return;
  try {
    std::rethrow_exception(error);
  } catch (...) {
    fail_located(plan_.nodes[static_cast<size_t>(n)], n);
  }
}

// The caller holds mutex_. How many became ready.
uint32_t Execution::push_successors(std::span<const int32_t> successors) {
  uint32_t ready = 0;
  for (const int32_t next : successors) {
    if (frame_.waiting[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    push_ready(next);
    ++ready;
  }
  return ready;
}

// The caller holds mutex_.
void Execution::note_done(int32_t n) {
  const auto i = static_cast<size_t>(n);
  done_[i] = true;
  if (!wanted_[i]) return;
  wanted_[i] = false;
  --wanted_left_;
}

// The caller holds mutex_, or is the only thread yet.
void Execution::push_ready(int32_t n) {
  frame_.ready[ready_count_++] = n;
  std::push_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
}

int32_t Execution::pop_ready() {
  std::pop_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
  return frame_.ready[--ready_count_];
}

// With the error in flight.
void Execution::fail(int32_t n) {
  {
    const std::lock_guard lock(mutex_);
    if (n < error_position_) {
      error_position_ = n;
      error_ = std::current_exception();
    }
  }
  if (plan_.can_wait)
    frame_.waits.cancel(Code::kCancelled, "another operation of the run has failed");
}

// The same, of a node that waited: one that was cancelled for another's error has none of its own.
void Execution::fail_waiting(const PlanNode& p, int32_t n) noexcept {
  if (!frame_.waits.cancelled() || frame_.token.cancelled()) fail_located(p, n);
}

void Execution::fail_located(const PlanNode& p, int32_t n) noexcept {
  try {
    rethrow_located(p, frame_);
  } catch (...) {
    fail(n);
  }
}

// While the caller waits for others: what its own business throws goes before the error of any
// node.
void Execution::look_after_interrupts() noexcept {
  try {
    poll_interrupt();
  } catch (...) {
    fail(kNone);
  }
}

}  // namespace treenail
