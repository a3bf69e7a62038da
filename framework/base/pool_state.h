// SPDX-License-Identifier: Apache-2.0
// What the files of the pool share: the slots that regions of work are put into, and the state of
// the process's one pool. Nobody else includes this; the interfaces are thread_pool.h (a region of
// a fixed number of chunks) and work_region.h (a region that grows).
//
// A slot's ticket holds the number of its region (the epoch), whether that grows, and how many
// chunks nobody has claimed yet; a claim is one compare-and-swap that lowers the count. A claim
// succeeds only while the region lives, so its description, on its owner's stack, is read after the
// claim and needs no protection of its own. `pending` counts what has not ended; who brings it to
// zero wakes the owner if that sleeps. Slots are never freed: who has counted his last chunk as
// ended, or has added his last unit, may still touch the slot, of which the worst is that an owner
// wakes up for nothing.
//
// Lock order: none. `busy` and `adjusting` are tried, never waited for. A thread waits for its own
// region only, that is for chunks that somebody has begun; those wait at most for the chunks of a
// region inside theirs (kDeepest), and these for nothing.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>

#include "framework/base/cancellation.h"
#include "framework/base/fork.h"
#include "framework/base/function_ref.h"
#include "framework/base/spin.h"

namespace treenail::pool_detail {

constexpr int kMaxThreads = 1024;
constexpr int kMaxHooks = 16;
constexpr int kSlots = 16;
constexpr int kDeepest = 2;  // regions around a chunk at most
constexpr int64_t kMaxChunksPerTicket = int64_t{1} << 30;
constexpr uint32_t kCallerSleeps = 1u << 31;  // in Slot::pending, of a region of chunks
constexpr uint32_t kGrowing = 1u << 31;       // in Slot::ticket
constexpr int64_t kNoError = std::numeric_limits<int64_t>::max();

constexpr double kHotSerialNs =
    4'000;  // less work than this is not worth sharing with a spinning helper
constexpr double kColdSerialNs =
    200'000;  // nor this with a sleeping one: it starts 30 to 45 us later

inline uint32_t unclaimed(uint64_t ticket) { return static_cast<uint32_t>(ticket) & ~kGrowing; }
inline bool grows(uint64_t ticket) { return (ticket & kGrowing) != 0; }

// Of the calling thread. Begun anew in the child of a fork.
struct ThreadState {
  int depth = 0;  // regions around what it runs
  int slot = 0;   // that it had last: another caller's slot is another CPU's cache line
};
extern constinit thread_local ThreadState this_thread;

// A region of chunks; or, of a huge one, the part of it that one ticket can count.
struct Chunks {
  Chunks(FunctionRef<void(int64_t)> body, int depth, const CancellationToken* token)
      : body(body), depth(depth), token(token) {}

  FunctionRef<void(int64_t)> body;
  const uint32_t generation = fork_generation();
  int depth;  // of the chunks
  const CancellationToken* token;
  int64_t first = 0;  // number of this ticket's chunk 0 in the whole region
  uint32_t count = 0;
  std::atomic<int64_t> lowest_error{kNoError};  // chunks above it need not run
  std::atomic<bool> cancelled{false};           // a chunk was left out because of the token
  std::atomic_flag error_lock;
  std::exception_ptr error;

  bool failed() const {
    return cancelled.load(std::memory_order_relaxed) ||
           lowest_error.load(std::memory_order_relaxed) != kNoError;
  }
  // False when this process turned out to be a forked child: then nothing of the region, which may
  // be another thread's, is touched any more.
  // Chunks are claimed in ascending order, and one that is claimed is left out only for the error
  // of a lower one: so the lowest that throws is the same whatever the timing.
  bool run(int64_t index) {
    if (index > lowest_error.load(std::memory_order_relaxed)) return true;
    if (token != nullptr && token->cancelled()) {
      cancelled.store(true, std::memory_order_relaxed);
      return true;
    }
    const uint32_t born = generation;
    try {
      body(first + index);
    } catch (...) {
      if (fork_generation() == born) keep_error(index, std::current_exception());
    }
    return fork_generation() == born;
  }

 private:
  void keep_error(int64_t chunk, std::exception_ptr thrown);
};

// A region that grows (work_region.h).
struct Units {
  FunctionRef<void()> body;
  uint32_t generation;
  int depth;  // of the units
  // As Chunks::run. Ends the process if the body throws.
  bool run() const noexcept;
};

// What the owner of a growing region does.
enum OwnerState : uint32_t { kRuns, kLooks, kSleeps };

// Words that different threads write lie on cache lines of their own; 128 bytes because CPUs fetch
// lines in pairs.
struct Slot {
  alignas(128) std::atomic<uint64_t> ticket{0};  // epoch << 32 | kGrowing | not claimed
  // Chunks not ended | kCallerSleeps; of a growing region units not ended, and one until close().
  alignas(128) std::atomic<uint32_t> pending{0};
  // Of what is claimed; one of them, as the ticket says.
  Chunks* chunks = nullptr;
  const Units* units = nullptr;
  std::atomic<uint32_t> owner{kRuns};  // an OwnerState; of a growing region
  std::atomic<int> joined{0};  // helpers in a growing region; each goes up and down around a unit
  std::atomic<int> most_joined{0};

  alignas(128) std::atomic<bool> busy{false};
  std::atomic<bool> callers{false};      // the region lies in no other one
  std::atomic<int64_t> last_call_ns{0};  // when a region that lies in no other began here
  // Only the holder of `busy` touches these.
  int64_t last_region_ns = 0;
  double burst_ns = 0;         // work run serially in this burst because helpers slept
  int64_t next_count_ns = 0;   // when callers are counted again
  Slot* next_spare = nullptr;  // fixed once the slot is in the list

  bool offers_work() const {
    const uint64_t seen = ticket.load(std::memory_order_acquire);
    if (unclaimed(seen) == 0) return false;
    return !grows(seen) ||
           joined.load(std::memory_order_relaxed) < most_joined.load(std::memory_order_relaxed);
  }
  // Of a helper that found a growing region; `joined` goes down when it leaves.
  bool join() {
    const int limit = most_joined.load(std::memory_order_relaxed);
    if (joined.fetch_add(1, std::memory_order_relaxed) < limit) return true;
    joined.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  // Chunks that were left before this claim took one, of a region that grows or not; 0: nothing
  // there to claim.
  uint32_t claim(bool growing) {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    while (unclaimed(seen) != 0 && grows(seen) == growing) {
      if (ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
        return unclaimed(seen);
      }
    }
    return 0;
  }
  // The next region begins, with this lower half. Sequentially consistent with helpers that fall
  // asleep.
  void publish(uint32_t lower) {
    const uint64_t epoch = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
    ticket.store(epoch << 32 | lower, std::memory_order_seq_cst);
  }
  void count_chunks_ended(uint32_t ended) {
    if (ended == 0) return;
    const uint32_t before = pending.fetch_sub(ended, std::memory_order_acq_rel);
    if (before == (ended | kCallerSleeps)) futex_wake(&pending, 1);
  }
  void count_unit_ended();
  void wake_owner();
};

struct State {
  struct Helper {
    State* pool;
    int index;
    pthread_t thread;
  };
  using Hook = void (*)();

  // --- read often, written rarely ---
  alignas(128) std::atomic<int> threads{1};  // asked for, the caller included
  std::atomic<const char*> origin{""};       // who decided `threads`
  std::atomic<int> used_slots{1};            // slots from here on were never taken
  std::atomic<int> helpers{0};               // started
  std::atomic<int> started_for{1};     // the value of `threads` that `helpers` answers, even if the
                                       // system refused some
  std::atomic<bool> adjusting{false};  // somebody starts or ends helpers; tried, never waited for
  std::atomic<int> helper_limit{0};    // helpers at or above this index end
  std::atomic<int> awake_limit{0};     // helpers beyond this number rest: callers use their CPUs
  std::atomic<int64_t> spin_ns{0};
  std::atomic<Hook> hooks[kMaxHooks] = {};
  std::atomic<int64_t> last_check_ns{0};
  std::atomic<int64_t> shared_until_ns{0};
  std::atomic<long> last_switches{0};
  std::atomic<Slot*> spares{nullptr};  // slots that helpers never look at; the list only grows

  // --- sleeping helpers ---
  alignas(128) std::atomic<uint32_t> bell{0};  // they sleep on it; rung to wake some
  std::atomic<int> sleepers{0};

  Slot slots[kSlots];
  Helper helper[kMaxThreads];

  State();

  // --- slots (pool_slots.cc) ---
  // For a region that `me` begins; nullptr: none is free.
  Slot* take_slot(ThreadState& me) {
    Slot& last = slots[me.slot];
    if (me.depth == 0 && !last.busy.load(std::memory_order_relaxed) &&
        !last.busy.exchange(true, std::memory_order_acquire)) {
      return &last;
    }
    return take_other_slot(me);
  }
  Slot* take_spare();  // throws std::bad_alloc
  // Gives a slot up, unless a fork has already begun the pool anew.
  static void give_up(Slot& slot, uint32_t taken_in_generation) {
    if (fork_generation() == taken_in_generation) slot.busy.store(false, std::memory_order_release);
  }
  // Readies the pool for a region that `slot` was taken for; at most `useful` helpers can take
  // part. The number of helpers to wake, or -1 to run serially.
  int prepare(const ThreadState& me, Slot& slot, double cost_ns, int64_t useful);
  // Between two chunks of the owner: others may have left the machine to us.
  void reconsider(Slot& slot) {
    if (awake_limit.load(std::memory_order_relaxed) < helpers.load(std::memory_order_relaxed)) {
      reconsider_crowded(slot);
    }
  }
  // For up to `units` of work that nobody awake is there for.
  void wake_for(uint32_t units, const Slot* but);

  // --- helpers (pool_helpers.cc) ---
  void adjust_helpers(const Slot& mine);
  void wake_helpers(int count);

 private:
  Slot* take_other_slot(ThreadState& me);
  void watch_machine(int64_t now, int64_t last);
  void count_callers(Slot& mine, int64_t now);
  void reconsider_crowded(Slot& slot);
  int helpers_elsewhere(const Slot* but) const;
  int helpers_to_wake(Slot& slot, double cost_ns, int64_t useful, int64_t now);

  void set_helpers(int wanted_threads);
  bool start_helper(int index);
  void helper_main(int index);
  bool wait_for_work(int index);
  bool must_rest() const;
  void sleep(int index, bool rests);
  bool serve(int* turn, int* hooks_run);
  Slot* next_slot(int* turn);
  void run_hooks(int* hooks_run);
};

// The state of ThreadPool::instance().
State& state();

}  // namespace treenail::pool_detail
