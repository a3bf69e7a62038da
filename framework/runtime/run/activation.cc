// SPDX-License-Identifier: Apache-2.0
// A node waits in one place at a time, once per run, so the frame's two words per node hold the
// ready nodes and the threads' own stacks.
#include "framework/runtime/run/activation.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/run/node_run.h"

namespace treenail {
namespace {

// A node below this runs on the thread that readied it.
constexpr double kInlineNs = 5'000;
// Of a place's 64 bits those for the iteration.
constexpr int kIterationBits = 38;

// What calls a body may find that it computes without waiting.
bool is_cheap(const PlanNode& p) {
  return p.kind == PlanNode::Kind::kOrder || p.kind == PlanNode::Kind::kView ||
         (p.asynchronous && !p.calls) || p.queued || (p.kernel && p.kernel->cost_ns < kInlineNs);
}

}  // namespace

Activation::Activation(RunQueue& queue, const Plan& plan, Frame& frame, const Caller& caller)
    : queue_(queue),
      plan_(plan),
      frame_(frame),
      caller_(caller),
      depth_(caller.activation != nullptr ? caller.activation->depth_ + 1 : 0) {
  frame.activation = this;
  if (caller.parts != nullptr) {
    args_left_ = plan.arg_successors.size();
    for (const Numbers& waits : plan.fetch_waits) {
      if (waits.empty()) parts_.push_back(static_cast<int32_t>(parts_left_.size()));
      parts_left_.push_back(static_cast<uint32_t>(waits.size()));
    }
  } else if (!plan.arg_successors.empty() || !plan.fetch_waits.empty() ||
             !plan.target_waits.empty()) {  // a run in parts, maybe without feeds
    done_.resize(plan.nodes.size());
    wanted_.resize(plan.nodes.size());
  }
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    frame.waiting[n].store(plan.nodes[n].waits_for, std::memory_order_relaxed);
    if (plan.nodes[n].waits_for == 0) push_heap(static_cast<int32_t>(n));
  }
}

void Activation::enqueue() {
  live_ += static_cast<int64_t>(ready_count_);
  queue_.queued_ += static_cast<uint32_t>(ready_count_);
  if (ready_count_ > 0) queue_.link(*this);
}

void Activation::begin() {
  RunQueue& queue = queue_;
  auto units = static_cast<uint32_t>(ready_count_);
  {
    const std::lock_guard lock(queue.mutex_);
    enqueue();
    if (args_left_ > 0) {
      ++live_;
      units += note_ends({});
    } else if (units == 0) {
      units = push_end();
    }
    queue.units_left_ += units;
  }
  queue.announce(units);
}

void Activation::give(size_t feed) {
  RunQueue& queue = queue_;
  uint32_t units = 0;
  {
    const std::lock_guard lock(queue.mutex_);
    units = push_successors(plan_.arg_successors[feed]) + note_ends(plan_.arg_ends[feed]);
    units += drop_args(1);
    queue.units_left_ += units;
  }
  queue.announce(units);
}

void Activation::give_up() {
  RunQueue& queue = queue_;
  uint32_t units = 0;
  {
    const std::lock_guard lock(queue.mutex_);
    units = drop_args(args_left_);
    queue.units_left_ += units;
  }
  queue.announce(units);
}

void Activation::arrive(size_t feed) {
  const std::lock_guard lock(queue_.mutex_);
  push_successors(plan_.arg_successors[feed]);
}

int64_t Activation::want(std::span<const int32_t> nodes) {
  const std::lock_guard lock(queue_.mutex_);
  int64_t left = 0;
  for (const int32_t n : nodes) {
    const auto i = static_cast<size_t>(n);
    if (done_[i] || wanted_[i]) continue;
    wanted_[i] = true;
    ++left;
  }
  queue_.want(left);
  return left;
}

void Activation::run_unit(int32_t unit) noexcept {
  if (unit == kOver) return end_body();
  if (unit == kParts) return tell_parts();
  int64_t executed = 0;
  run_chain(unit, executed);
  if (queue_.forked()) return;
  bool over = false;
  {
    const std::lock_guard lock(queue_.mutex_);
    executed_ += executed;
    over = --live_ == 0 && caller_.end != nullptr;
  }
  if (over) end_body();
}

void Activation::tell_parts() noexcept {
  std::vector<int32_t> there;
  {
    const std::lock_guard lock(queue_.mutex_);
    there.swap(parts_);
  }
  caller_.parts->arrived(there);
  bool over = false;
  {
    const std::lock_guard lock(queue_.mutex_);
    over = --live_ == 0;
  }
  if (over) end_body();
}

// The node, then what it readied: the cheap ones here at once, the others through the queue.
void Activation::run_chain(int32_t first, int64_t& executed) {
  int32_t mine = first;  // top of a stack linked through frame_.below
  frame_.below[static_cast<size_t>(first)] = kNone;
  while (mine != kNone) {
    const int32_t n = mine;
    mine = frame_.below[static_cast<size_t>(n)];
    const PlanNode& p = plan_.nodes[static_cast<size_t>(n)];
    if (counts_for_nothing(p, n)) continue;
    try {
      poll_interrupt();
    } catch (...) {
      if (queue_.forked()) return;
      fail_run();
      continue;
    }
    bool ran = false;
    try {
      frame_.scope->token.check();
      ran = begin_node(p, n);
    } catch (...) {
      if (queue_.forked()) return;
      fail(n, std::current_exception());
      continue;
    }
    // A kernel may fork (a plugin's, or a signal handler on the way).
    if (queue_.forked()) return;
    if (!ran) continue;
    ++executed;
    mine = ready_successors(p, n, mine);
  }
}

// Whether the node has run; an asynchronous one says itself when it has.
bool Activation::begin_node(const PlanNode& p, int32_t n) {
  if (!p.asynchronous) {
    if (p.queued) {
      enqueue_node(plan_, p, frame_, Failure(*this, n));
    } else {
      run_node(plan_, p, frame_);
    }
    return true;
  }
  {
    const std::lock_guard lock(queue_.mutex_);
    ++queue_.waiting_;
    ++live_;
  }
  try {
    start_node(plan_, p, frame_, Done(*this, n));
  } catch (...) {
    if (!queue_.forked()) ended(n, std::current_exception());
  }
  return false;
}

// `mine` with the cheap ones on top.
int32_t Activation::ready_successors(const PlanNode& p, int32_t n, int32_t mine) {
  uint32_t queued = 0;
  if (!done_.empty() || !parts_left_.empty()) {
    const std::lock_guard lock(queue_.mutex_);
    queued = note_done(n);
    queue_.units_left_ += queued;
  }
  for (const int32_t next : p.successors) {
    if (frame_.waiting[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    if (is_cheap(plan_.nodes[static_cast<size_t>(next)])) {
      frame_.below[static_cast<size_t>(next)] = mine;
      mine = next;
    } else {
      const std::lock_guard lock(queue_.mutex_);
      push_ready(next);
      ++queue_.units_left_;
      ++queued;
    }
  }
  // This thread takes one itself, unless it goes on with cheap nodes first.
  if (queued > 0) queue_.region_->add(queued, queued - (mine == kNone ? 1 : 0));
  return mine;
}

// When the lock is free the run may be gone, or the body, by who takes its end out of the queue.
void Activation::ended(int32_t n, std::exception_ptr error) noexcept {
  RunQueue& queue = queue_;
  if (queue.forked()) return;
  const PlanNode& p = plan_.nodes[static_cast<size_t>(n)];
  if (error == nullptr) {
    try {
      finish_node(plan_, p, frame_);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error != nullptr) note_failure(p, n, error);
  uint32_t queued = 0;
  bool close = false;
  {
    const std::lock_guard lock(queue.mutex_);
    --queue.waiting_;
    if (error == nullptr) {
      ++executed_;
      queued = note_done(n) + push_successors(p.successors);
    }
    if (--live_ == 0 && caller_.end != nullptr) queued += push_end();
    if (!queue.open_) return;
    queue.units_left_ += queued;
    close = queue.closes();
  }
  if (queued > 0) queue.announce(queued);
  if (close) queue.region_->close();
}

// Nothing of the body runs or waits any more. The kernel that called it may free this.
void Activation::end_body() noexcept {
  if (queue_.forked() || (!drained_ && drain())) return;
  caller_.end->ended(outcome());
}

// Whether devices are still to be past what the body has given them: then the end comes again.
bool Activation::drain() noexcept {
  drained_ = true;
  std::vector<Device*> busy;
  for (const PlanMemory& memory : plan_.memories)
    if (memory.used && !memory.device->is_host()) busy.push_back(memory.device);
  if (busy.empty()) return false;
  {
    const std::lock_guard lock(queue_.mutex_);
    over_ = false;
    live_ = static_cast<int64_t>(busy.size());
  }
  for (Device* device : busy) device->notify(*this);
  return true;
}

void Activation::reached(std::exception_ptr error) noexcept {
  RunQueue& queue = queue_;
  if (queue.forked()) return;
  uint32_t queued = 0;
  {
    const std::lock_guard lock(queue.mutex_);
    if (error != nullptr && error_ == nullptr) error_ = std::move(error);
    if (--live_ == 0) queued = push_end();
    if (!queue.open_) return;
    queue.units_left_ += queued;
  }
  queue.announce(queued);
}

std::exception_ptr Activation::outcome() const {
  const bool all = executed_ == static_cast<int64_t>(plan_.nodes.size());
  if (error_ == nullptr && all) return nullptr;
  return std::make_exception_ptr(BodyError{error_});
}

// What a device finds when the node has ended here already.
void Activation::failed(int32_t n, std::exception_ptr error) noexcept {
  if (queue_.forked()) return;
  try {
    std::rethrow_exception(error);
  } catch (...) {
    fail_located(plan_.nodes[static_cast<size_t>(n)], n);
  }
}

bool Activation::superseded(int32_t n) const noexcept {
  return frame_.scope->token.cancelled() || (queue_.failed() && comes_later(n));
}

uint32_t Activation::push_successors(std::span<const int32_t> successors) {
  uint32_t ready = 0;
  for (const int32_t next : successors) {
    if (frame_.waiting[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    push_ready(next);
    ++ready;
  }
  return ready;
}

// Before it is there.
void Activation::link_unit() {
  if (!has_units()) queue_.link(*this);
  ++queue_.queued_;
}

uint32_t Activation::push_end() {
  link_unit();
  over_ = true;
  return 1;
}

// How many units that makes.
uint32_t Activation::note_done(int32_t n) {
  const auto i = static_cast<size_t>(n);
  if (!parts_left_.empty()) return note_ends(plan_.node_ends[i]);
  if (done_.empty()) return 0;
  done_[i] = true;
  if (!wanted_[i]) return 0;
  wanted_[i] = false;
  --queue_.wanted_left_;
  return 0;
}

uint32_t Activation::note_ends(const Numbers& results) {
  for (const int32_t result : results)
    if (--parts_left_[static_cast<size_t>(result)] == 0) parts_.push_back(result);
  if (parts_.empty() || parts_queued_) return 0;
  link_unit();
  parts_queued_ = true;
  ++live_;
  return 1;
}

uint32_t Activation::drop_args(size_t count) {
  args_left_ -= count;
  return count > 0 && args_left_ == 0 && --live_ == 0 ? push_end() : 0;
}

void Activation::push_heap(int32_t n) {
  frame_.ready[ready_count_++] = n;
  std::push_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
}

void Activation::push_ready(int32_t n) {
  link_unit();
  push_heap(n);
  ++live_;
}

int32_t Activation::pop_unit() {
  if (parts_queued_) {
    parts_queued_ = false;
    return kParts;
  }
  if (ready_count_ == 0) {
    over_ = false;
    return kOver;
  }
  std::pop_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
  return frame_.ready[--ready_count_];
}

// --- Errors

int64_t Activation::place_of(int32_t node, int64_t iteration) {
  const int64_t most = (int64_t{1} << kIterationBits) - 1;
  return (int64_t{node} << kIterationBits) + std::clamp<int64_t>(iteration, 0, most);
}

bool Activation::counts_for_nothing(const PlanNode& p, int32_t n) const {
  return queue_.failed() && ((p.asynchronous && !p.calls) || comes_later(n));
}

// Than the first error, here or around.
bool Activation::comes_later(int32_t n) const {
  int64_t place = place_of(n, 0);
  for (const Activation* a = this; a != nullptr; a = a->caller_.activation) {
    if (place > a->error_place_.load(std::memory_order_relaxed)) return true;
    place = place_of(a->caller_.node, a->caller_.iteration);
  }
  return false;
}

void Activation::fail(int32_t n, std::exception_ptr error) noexcept {
  {
    const std::lock_guard lock(queue_.mutex_);
    if (error_ == nullptr || n < error_node_) {
      error_ = std::move(error);
      error_node_ = n;
    }
    int64_t place = place_of(n, 0);
    for (Activation* a = this; a != nullptr; a = a->caller_.activation) {
      if (a->error_place_.load(std::memory_order_relaxed) <= place) break;
      a->error_place_.store(place, std::memory_order_relaxed);
      place = place_of(a->caller_.node, a->caller_.iteration);
    }
    queue_.failed_.store(true, std::memory_order_release);
  }
  frame_.scope->waits.cancel(Code::kCancelled, "another operation of the run has failed");
}

void Activation::fail_run() noexcept {
  Activation* first = this;
  while (first->caller_.activation != nullptr) first = first->caller_.activation;
  first->fail(kNone, std::current_exception());
}

// With the error in flight.
void Activation::fail_located(const PlanNode& p, int32_t n) noexcept {
  try {
    rethrow_located(plan_, p, frame_);
  } catch (...) {
    fail(n, std::current_exception());
  }
}

// Of an asynchronous node. One that was cancelled for another's error has none of its own; a call
// has what its body has.
void Activation::note_failure(const PlanNode& p, int32_t n, std::exception_ptr error) noexcept {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const BodyError& body) {
    if (body.error != nullptr) fail(n, body.error);
  } catch (...) {
    const RunScope& scope = *frame_.scope;
    if (p.calls || !scope.waits.cancelled() || scope.token.cancelled()) fail_located(p, n);
  }
}

}  // namespace treenail
