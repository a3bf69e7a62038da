// SPDX-License-Identifier: Apache-2.0
// Slots: who has one, what runs in it, and how many helpers a region is worth. Recipe and figures:
// performance.md section 11 ("Pool").
//
// Callers count as threads of the pool: beside n of them at most num_threads() - n helpers stay
// awake, for a helper that shares a CPU with a caller keeps its own region's caller waiting for as
// long as the kernel's time slice. What is published meanwhile lies open, and the owner looks again
// between its chunks.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "framework/base/pool_state.h"
#include "framework/base/spin.h"

namespace treenail::pool_detail {
namespace {

constexpr int64_t kBurstGapNs = 1'000'000;  // regions closer than this count as one burst
constexpr int64_t kCallerGapNs = 500'000;   // so long after its last region a caller is gone
constexpr int64_t kCountIntervalNs = 100'000;
constexpr int64_t kCheckIntervalNs = 4'000'000;
constexpr int64_t kSharedForNs = 60'000'000;
constexpr int64_t kSpinNs = 100'000;
constexpr int64_t kSharedSpinNs = 20'000;

}  // namespace

constinit thread_local ThreadState this_thread;

void Chunks::keep_error(int64_t chunk, std::exception_ptr thrown) {
  while (error_lock.test_and_set(std::memory_order_acquire)) spin_pause();
  if (chunk < lowest_error.load(std::memory_order_relaxed)) {
    lowest_error.store(chunk, std::memory_order_relaxed);
    error.swap(thrown);
  }
  error_lock.clear(std::memory_order_release);
}

bool Units::run() const noexcept {
  const uint32_t born = generation;
  body();
  return fork_generation() == born;
}

void Slot::count_unit_ended() {
  if (pending.fetch_sub(1, std::memory_order_seq_cst) == 1) wake_owner();
}

void Slot::wake_owner() {
  if (owner.load(std::memory_order_seq_cst) != kSleeps) return;
  if (owner.exchange(kLooks, std::memory_order_seq_cst) == kSleeps) futex_wake(&owner, 1);
}

State::State() { spin_ns.store(kSpinNs, std::memory_order_relaxed); }

Slot* State::take_other_slot(ThreadState& me) {
  const int begin = me.depth == 0 ? me.slot : 0;
  for (int i = 0; i < kSlots; ++i) {
    const int index = (begin + i) % kSlots;
    Slot& slot = slots[index];
    if (slot.busy.load(std::memory_order_relaxed) ||
        slot.busy.exchange(true, std::memory_order_acquire)) {
      continue;
    }
    if (me.depth == 0) me.slot = index;
    int used = used_slots.load(std::memory_order_relaxed);
    while (used <= index &&
           !used_slots.compare_exchange_weak(used, index + 1, std::memory_order_release)) {
    }
    return &slot;
  }
  return nullptr;
}

Slot* State::take_spare() {
  for (Slot* slot = spares.load(std::memory_order_acquire); slot; slot = slot->next_spare) {
    if (!slot->busy.load(std::memory_order_relaxed) &&
        !slot->busy.exchange(true, std::memory_order_acquire)) {
      return slot;
    }
  }
  auto* made = new Slot;
  made->busy.store(true, std::memory_order_relaxed);
  made->next_spare = spares.load(std::memory_order_relaxed);
  while (!spares.compare_exchange_weak(made->next_spare, made, std::memory_order_acq_rel)) {
  }
  return made;
}

// Two or more involuntary switches in about 4 ms: somebody else wants this CPU.
void State::watch_machine(int64_t now, int64_t last) {
  if (!last_check_ns.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  rusage usage;
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  const long switches =
      usage.ru_nivcsw - last_switches.exchange(usage.ru_nivcsw, std::memory_order_relaxed);
  // A long pause says nothing about the last few milliseconds.
  const bool recent = now - last < 8 * kCheckIntervalNs;
  if (recent && switches >= 2) shared_until_ns.store(now + kSharedForNs, std::memory_order_relaxed);
  const bool shared = now < shared_until_ns.load(std::memory_order_relaxed);
  spin_ns.store(shared ? kSharedSpinNs : kSpinNs, std::memory_order_relaxed);
}

// Callers are few and their slots lie on lines that they write: looking at them now and then is
// enough.
void State::count_callers(Slot& mine, int64_t now) {
  mine.next_count_ns = now + kCountIntervalNs;
  int callers = 0;
  const int used = used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < used; ++i) {
    const Slot& slot = slots[i];
    if (slot.busy.load(std::memory_order_relaxed)) {
      // An owner that sleeps needs no CPU.
      callers += slot.callers.load(std::memory_order_relaxed) &&
                 slot.owner.load(std::memory_order_relaxed) != kSleeps;
    } else {
      callers += now - slot.last_call_ns.load(std::memory_order_relaxed) < kCallerGapNs;
    }
  }
  const int limit = std::max(started_for.load(std::memory_order_relaxed) - callers, 0);
  // Sequentially consistent with helpers that lie down to rest: either one sees the new limit, or
  // who wakes helpers after this sees that sleeper.
  if (awake_limit.load(std::memory_order_relaxed) != limit) {
    awake_limit.store(limit, std::memory_order_seq_cst);
  }
}

void State::reconsider_crowded(Slot& slot) {
  const int64_t now = monotonic_ns();
  if (now < slot.next_count_ns) return;
  count_callers(slot, now);
  wake_for(unclaimed(slot.ticket.load(std::memory_order_relaxed)), &slot);
}

// About how many helpers are, or soon will be, in the regions of other slots.
int State::helpers_elsewhere(const Slot* but) const {
  int count = 0;
  const int used = used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < used; ++i) {
    const Slot& slot = slots[i];
    if (&slot == but || !slot.busy.load(std::memory_order_relaxed)) continue;
    if (grows(slot.ticket.load(std::memory_order_relaxed))) {
      count += slot.joined.load(std::memory_order_relaxed);
    } else {
      const uint32_t open = slot.pending.load(std::memory_order_relaxed) & ~kCallerSleeps;
      count += static_cast<int>(std::clamp<uint32_t>(open, 1, kMaxThreads)) - 1;
    }
  }
  return count;
}

// How many sleeping helpers to wake for `cost_ns` of work; -1: run serially. A burst of regions,
// each too small to wake somebody for, wakes helpers when their sum is large enough.
int State::helpers_to_wake(Slot& slot, double cost_ns, int64_t useful, int64_t now) {
  const int asleep = sleepers.load(std::memory_order_seq_cst);
  const int limit = awake_limit.load(std::memory_order_relaxed);
  const int awake = std::max(helpers.load(std::memory_order_relaxed) - asleep, 0);
  const int idle = std::max(std::min(awake, limit) - helpers_elsewhere(&slot), 0);
  const int may_wake = static_cast<int>(std::min<int64_t>({asleep, limit - awake, useful - idle}));
  if (idle >= useful) return 0;
  const double share_ns = cost_ns / (idle + 1);
  if (now - slot.last_region_ns > kBurstGapNs) slot.burst_ns = 0;
  slot.burst_ns += share_ns;
  if (slot.burst_ns < kColdSerialNs) return idle == 0 ? -1 : 0;
  slot.burst_ns = 0;
  return std::max(may_wake, 0);
}

int State::prepare(const ThreadState& me, Slot& slot, double cost_ns, int64_t useful) {
  const bool caller = me.depth == 0;
  slot.callers.store(caller, std::memory_order_relaxed);
  if (caller &&
      threads.load(std::memory_order_relaxed) != started_for.load(std::memory_order_relaxed)) {
    adjust_helpers(slot);
  }
  if (helpers.load(std::memory_order_relaxed) == 0) return -1;
  const int64_t now = monotonic_ns();
  if (caller) {
    slot.last_call_ns.store(now, std::memory_order_relaxed);
    const int64_t last = last_check_ns.load(std::memory_order_relaxed);
    if (now - last >= kCheckIntervalNs) watch_machine(now, last);
  }
  if (now >= slot.next_count_ns) count_callers(slot, now);
  const int wake =
      sleepers.load(std::memory_order_seq_cst) == 0
          ? 0
          : helpers_to_wake(slot, cost_ns, std::min<int64_t>(useful, kMaxThreads), now);
  slot.last_region_ns = now;
  return wake;
}

void State::wake_for(uint32_t units, const Slot* but) {
  const int asleep = sleepers.load(std::memory_order_seq_cst);
  if (asleep == 0 || units == 0) return;
  const int awake = std::max(helpers.load(std::memory_order_relaxed) - asleep, 0);
  const int idle = std::max(awake - helpers_elsewhere(but), 0);
  const int room = awake_limit.load(std::memory_order_relaxed) - awake;
  const int wanted = static_cast<int>(std::min<uint32_t>(units, kMaxThreads)) - idle;
  wake_helpers(std::min({asleep, room, wanted}));
}

}  // namespace treenail::pool_detail
