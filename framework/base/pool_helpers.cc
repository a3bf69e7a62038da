// SPDX-License-Identifier: Apache-2.0
// Helpers: the pool's threads. They serve the regions there are in turn, chunk by chunk, and wait
// for nothing but work: they spin on the tickets, then sleep on the one bell. Spins are short while
// the machine is shared (involuntary context switches of this process say so): figures in
// performance.md section 11.
#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <utility>

#include "framework/base/fp_environment.h"
#include "framework/base/logging.h"
#include "framework/base/pool_state.h"
#include "framework/base/spin.h"

namespace treenail::pool_detail {

void State::run_hooks(int* hooks_run) {
  for (; *hooks_run < kMaxHooks; ++*hooks_run) {
    const Hook hook = hooks[*hooks_run].load(std::memory_order_acquire);
    if (hook == nullptr) break;
    hook();
  }
}

// The next slot in turn that has something to claim.
Slot* State::next_slot(int* turn) {
  const int used = used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < used; ++i) {
    int index = *turn + i;
    if (index >= used) index -= used;
    if (!slots[index].offers_work()) continue;
    *turn = index + 1 < used ? index + 1 : 0;
    return &slots[index];
  }
  return nullptr;
}

namespace {

// Runs what a claim gave; false when this process turned out to be a forked child.
bool run_claimed(const Slot& slot, bool growing, uint32_t left) {
  if (growing) {
    const Units& units = *slot.units;
    this_thread.depth = units.depth;
    if (!units.run()) return false;
  } else {
    Chunks& chunks = *slot.chunks;
    this_thread.depth = chunks.depth;
    if (!chunks.run(chunks.count - left)) return false;
  }
  this_thread.depth = 0;
  return true;
}

// The slot that a helper serves, and the chunks that it ended there and has not counted yet.
class Served {
 public:
  void begin(Slot* slot) {
    if (slot != slot_) leave();
    slot_ = slot;
  }
  void chunk_ended() { ++ended_; }
  void leave() {
    if (slot_ == nullptr) return;
    slot_->count_chunks_ended(std::exchange(ended_, 0));
    // Who adds units from inside one counts on this thread to take the next.
    const uint64_t seen = slot_->ticket.load(std::memory_order_seq_cst);
    if (grows(seen) && unclaimed(seen) != 0) slot_->wake_owner();
  }

 private:
  Slot* slot_ = nullptr;
  uint32_t ended_ = 0;
};

}  // namespace

// Runs chunks, of the regions in turn, until none is left to claim. False when this process turned
// out to be a forked child meanwhile. Hooks come behind the claim: between being woken and
// claiming, a region may end, a hook be added and the next region begin, and its chunks wait for
// that hook.
bool State::serve(int* turn, int* hooks_run) {
  Served served;
  while (!must_rest()) {
    Slot* const slot = next_slot(turn);
    if (slot == nullptr) break;
    served.begin(slot);
    const bool growing = grows(slot->ticket.load(std::memory_order_relaxed));
    if (growing && !slot->join()) continue;
    const uint32_t left = slot->claim(growing);
    if (left != 0) {
      run_hooks(hooks_run);
      if (!run_claimed(*slot, growing, left)) return false;
      if (growing) {
        slot->count_unit_ended();
      } else {
        served.chunk_ended();
      }
    }
    if (growing) slot->joined.fetch_sub(1, std::memory_order_relaxed);
  }
  served.leave();
  return true;
}

// Whether callers use so many CPUs that one awake helper less is better.
bool State::must_rest() const {
  const int limit = awake_limit.load(std::memory_order_relaxed);
  const int count = helpers.load(std::memory_order_relaxed);
  return limit < count && count - sleepers.load(std::memory_order_relaxed) > limit;
}

// Returns when the bell is rung, or earlier.
void State::sleep(int index, bool rests) {
  const uint32_t rung = bell.load(std::memory_order_seq_cst);
  // Sequentially consistent with who adds work, lets more helpers wake or ends some: either he sees
  // this sleeper, or it sees what he did.
  const int others = sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  int turn = 0;
  const bool sound = rests ? others < helpers.load(std::memory_order_relaxed) -
                                          awake_limit.load(std::memory_order_relaxed)
                           : next_slot(&turn) == nullptr;
  if (sound && index < helper_limit.load(std::memory_order_seq_cst)) futex_wait(&bell, rung);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

// False when this helper is to end.
bool State::wait_for_work(int index) {
  int64_t deadline = monotonic_ns() + spin_ns.load(std::memory_order_relaxed);
  for (int spins = 1;; ++spins) {
    if (index >= helper_limit.load(std::memory_order_relaxed)) return false;
    const bool rests = must_rest();
    int turn = 0;
    if (!rests && next_slot(&turn) != nullptr) return true;
    spin_pause();
    if (!rests && (spins % 32 != 0 || monotonic_ns() < deadline)) continue;
    sleep(index, rests);
    deadline = monotonic_ns() + spin_ns.load(std::memory_order_relaxed);
  }
}

void State::helper_main(int index) {
  int hooks_run = 0;
  int turn = 0;
  while (wait_for_work(index)) {
    const FpEnvironment ieee;
    if (!serve(&turn, &hooks_run)) return;
  }
}

bool State::start_helper(int index) {
  helper[index].pool = this;
  helper[index].index = index;
  const auto entry = [](void* argument) -> void* {
    auto* self = static_cast<Helper*>(argument);
    self->pool->helper_main(self->index);
    return nullptr;
  };
  // Signals are the business of the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int result = pthread_create(&helper[index].thread, nullptr, entry, &helper[index]);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (result != 0) {
    log(LogLevel::kWarning, "thread ", index + 2, " of the pool could not be started (",
        std::strerror(result), "); it goes on with ", index + 1);
    return false;
  }
  pthread_setname_np(helper[index].thread, concat("treenail-", index + 1).c_str());
  return true;
}

void State::wake_helpers(int count) {
  if (count <= 0) return;
  bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(&bell, count);
}

// Brings the helpers to the number asked for. More start at once; some end only if the pool is idle
// but for the caller's slot: who has all slots knows that no helper is in a region.
void State::adjust_helpers(const Slot& mine) {
  if (adjusting.exchange(true, std::memory_order_acquire)) return;
  const uint32_t generation = fork_generation();
  const int wanted = threads.load(std::memory_order_relaxed);
  if (wanted > helpers.load(std::memory_order_relaxed)) {
    set_helpers(wanted);
  } else {
    int taken = 0;
    while (taken < kSlots && (&slots[taken] == &mine ||
                              !slots[taken].busy.exchange(true, std::memory_order_acquire))) {
      ++taken;
    }
    if (taken == kSlots) set_helpers(wanted);
    while (taken-- > 0) {
      if (&slots[taken] != &mine) give_up(slots[taken], generation);
    }
  }
  if (fork_generation() == generation) adjusting.store(false, std::memory_order_release);
}

void State::set_helpers(int wanted_threads) {
  const int wanted = wanted_threads - 1;
  started_for.store(wanted_threads, std::memory_order_relaxed);
  awake_limit.store(wanted, std::memory_order_relaxed);
  helper_limit.store(wanted, std::memory_order_seq_cst);
  int count = helpers.load(std::memory_order_relaxed);
  if (count > wanted) {
    wake_helpers(kMaxThreads);
    for (; count > wanted; --count) pthread_join(helper[count - 1].thread, nullptr);
  }
  while (count < wanted && start_helper(count)) ++count;
  helpers.store(count, std::memory_order_relaxed);
}

}  // namespace treenail::pool_detail
