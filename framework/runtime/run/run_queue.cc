// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/run_queue.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/runtime/run/activation.h"

namespace treenail {
namespace {

// The queue that a unit on this thread is of.
thread_local const RunQueue* working_for = nullptr;

}  // namespace

void RunQueue::work(int helpers, double cost_ns, FunctionRef<void()> poll) {
  const FpEnvironment ieee;
  region_.emplace(unit_, helpers, cost_ns);
  uint32_t ready = 0;
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    ready = units_left_ = queued_;
    close = closes();
  }
  if (close) {
    region_->close();
  } else if (ready > 0) {
    region_->add(ready, ready - 1);  // this thread takes one
  }
  if (!region_->run(kInterruptMs, poll)) {
    throw failed_precondition(
        "the process was forked while this run was in flight; the child cannot finish it");
  }
  region_.reset();
}

void RunQueue::run_unit() noexcept {
  Activation* activation = nullptr;
  int32_t unit = 0;
  {
    const std::lock_guard lock(mutex_);
    activation = &take(unit);
  }
  const RunQueue* const outer = std::exchange(working_for, this);
  {
    const MemoryScope memory(account());
    activation->run_unit(unit);
  }
  working_for = outer;
  if (forked()) return;
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    --units_left_;
    close = closes();
  }
  if (close) region_->close();
}

// A thread that is in a unit comes for one itself. Before work() nobody comes.
void RunQueue::announce(uint32_t units) {
  if (units > 0 && region_) region_->add(units, units - (working_for == this ? 1 : 0));
}

void RunQueue::link(Activation& activation) {
  (first_ == nullptr ? first_ : last_->next_) = &activation;
  last_ = &activation;
  activation.next_ = nullptr;
}

Activation& RunQueue::take(int32_t& unit) {
  Activation& activation = *first_;
  first_ = activation.next_;
  --queued_;
  unit = activation.pop_unit();
  if (activation.has_units()) link(activation);
  return activation;
}

// Where this is true its caller closes the region, when it holds mutex_ no more.
bool RunQueue::closes() {
  const bool enough = waiting_ == 0 || (wanted_left_ == 0 && !failed());
  if (!open_ || units_left_ > 0 || !enough) return false;
  open_ = false;
  return true;
}

}  // namespace treenail
