// SPDX-License-Identifier: Apache-2.0
// A growing region has a slot as others do; where helpers are not to join it, one that they never
// look at. `pending` counts its units and one more until close(), so it ends at zero. The owner
// tells in `owner` whether it looks for units or sleeps; who adds looks there after the units are
// in the ticket, and the owner at the ticket after it has told: one of them sees the other.
#include "framework/base/work_region.h"

#include <algorithm>

#include "framework/base/spin.h"
#include "framework/base/thread_pool.h"

namespace treenail {

using pool_detail::kLooks;
using pool_detail::kRuns;
using pool_detail::kSleeps;
using pool_detail::Slot;
using pool_detail::State;
using pool_detail::this_thread;
using pool_detail::unclaimed;

WorkRegion::WorkRegion(FunctionRef<void()> body, int max_helpers, double cost_ns)
    : pool_(pool_detail::state()), units_{body, fork_generation(), this_thread.depth + 1} {
  if (max_helpers > 0 && cost_ns >= pool_detail::kHotSerialNs &&
      this_thread.depth < pool_detail::kDeepest &&
      pool_.threads.load(std::memory_order_relaxed) > 1) {
    slot_ = pool_.take_slot(this_thread);
  }
  if (slot_ != nullptr && pool_.prepare(this_thread, *slot_, cost_ns, max_helpers) < 0) {
    State::give_up(*slot_, units_.generation);
    slot_ = nullptr;
  }
  shared_ = slot_ != nullptr;
  if (!shared_) slot_ = pool_.take_spare();
  slot_->units = &units_;
  slot_->owner.store(kRuns, std::memory_order_relaxed);
  slot_->most_joined.store(max_helpers, std::memory_order_relaxed);
  slot_->pending.store(1, std::memory_order_relaxed);
  slot_->publish(pool_detail::kGrowing);
}

WorkRegion::~WorkRegion() {
  if (forked()) return;
  if (!ended()) {
    uint32_t dropped = 0;
    while (slot_->claim(true) != 0) ++dropped;
    if (!closed_.load(std::memory_order_relaxed)) ++dropped;
    slot_->pending.fetch_sub(dropped, std::memory_order_seq_cst);
    while (!ended()) wait(monotonic_ns() + 50'000'000);
  }
  slot_->publish(0);
  State::give_up(*slot_, units_.generation);
}

void WorkRegion::add(uint32_t units, uint32_t wake) {
  if (units == 0 || forked()) return;
  // Once the units can be claimed the region may end, and this thread outlast it.
  Slot& slot = *slot_;
  State& pool = pool_;
  const bool shared = shared_;
  slot.pending.fetch_add(units, std::memory_order_relaxed);
  slot.ticket.fetch_add(units, std::memory_order_seq_cst);
  if (wake == 0) return;
  const uint32_t owner = slot.owner.load(std::memory_order_seq_cst);
  if (owner != kRuns) --wake;
  if (owner == kSleeps) slot.wake_owner();
  if (wake > 0 && shared) pool.wake_for(wake, nullptr);
}

void WorkRegion::close() {
  if (forked()) return;
  closed_.store(true, std::memory_order_relaxed);
  slot_->count_unit_ended();
}

// Until none is left to claim; false in a forked child.
bool WorkRegion::run_units() {
  if (unclaimed(slot_->ticket.load(std::memory_order_acquire)) == 0) return true;
  const int depth = this_thread.depth;
  this_thread.depth = units_.depth;
  while (slot_->claim(true) != 0) {
    if (!units_.run()) return false;
    slot_->count_unit_ended();
    if (shared_) pool_.reconsider(*slot_);
  }
  this_thread.depth = depth;
  return true;
}

// Until there is a unit to claim, the region has ended, or that time has come.
void WorkRegion::wait(int64_t until_ns) {
  const auto idle = [this] {
    return unclaimed(slot_->ticket.load(std::memory_order_seq_cst)) == 0 && !ended();
  };
  slot_->owner.store(kLooks, std::memory_order_seq_cst);
  int64_t now = monotonic_ns();
  const int64_t spin_until =
      std::min(until_ns, now + pool_.spin_ns.load(std::memory_order_relaxed));
  for (int spins = 1; idle() && now < until_ns; ++spins) {
    spin_pause();
    if (spins % 32 != 0) continue;
    now = monotonic_ns();
    if (now < spin_until) continue;
    slot_->owner.store(kSleeps, std::memory_order_seq_cst);
    if (idle() && now < until_ns) futex_wait_for(&slot_->owner, kSleeps, until_ns - now);
  }
  slot_->owner.store(kRuns, std::memory_order_seq_cst);
}

bool WorkRegion::run(int wake_ms, FunctionRef<void()> poll) {
  const int64_t period_ns = int64_t{wake_ms} * 1'000'000;
  int64_t next_poll_ns = 0;
  while (run_units()) {
    if (ended()) return true;
    const int64_t now = monotonic_ns();
    if (next_poll_ns == 0) next_poll_ns = now + period_ns;
    if (now >= next_poll_ns) {
      poll();
      if (forked()) return false;
      next_poll_ns = now + period_ns;
    }
    wait(next_poll_ns);
    // What others fork concerns them: the child of another thread does not have this one.
  }
  return false;
}

}  // namespace treenail
