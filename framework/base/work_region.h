// SPDX-License-Identifier: Apache-2.0
// Work that grows while it is done, on the process's pool (thread_pool.h): an executor's ready
// nodes. The thread that makes a region owns it, runs units and may sleep while there are none;
// helpers of the pool come for units and leave when none is left, so none of them ever waits here.
#pragma once

#include <atomic>
#include <cstdint>

#include "framework/base/function_ref.h"
#include "framework/base/pool_state.h"

namespace treenail {

class WorkRegion {
 public:
  // `body` is called once for each unit, by the owner or by one of at most `max_helpers` helpers at
  // a time; what there is to do it finds itself. It must not throw: that ends the process. Regions
  // of chunks that it opens are shared with helpers as from inside a chunk. `cost_ns` estimates all
  // units together: where no helper is awake and that is too little for waking one, or no slot of
  // the pool is free, the owner runs all units alone.
  WorkRegion(FunctionRef<void()> body, int max_helpers, double cost_ns = 1e9);
  // Where run() did not end the region, units that nobody has begun are dropped, begun ones waited
  // for.
  ~WorkRegion();
  WorkRegion(const WorkRegion&) = delete;
  WorkRegion& operator=(const WorkRegion&) = delete;

  // From any thread, inside a unit or outside the pool: `units` more calls of body, of which at
  // least that many calls begin after this one did; fewer than 2^30 may wait at once. Takes no lock
  // and never waits. Makes sure that somebody is awake for `wake` of them: who adds from inside a
  // unit that is about to end takes one itself, and wakes one less.
  //
  // A thread may call this as long as it knows that the region has not ended: from inside a unit,
  // or where close() waits for a unit of its own. The call itself may outlast the region: it
  // touches nothing of it any more once its units are there to be claimed.
  void add(uint32_t units, uint32_t wake);
  void add(uint32_t units = 1) { add(units, units); }

  // From any thread, once: no more units will be added. Whoever calls it from outside a unit must
  // not touch the region afterwards, which may have ended.
  void close();

  // The owner's, once: runs units until the region is closed and all of them have ended; what body
  // did is visible then. Between units it spins briefly, then sleeps; while it waits it calls
  // `poll` every `wake_ms`, which must not throw and may add and close. False in a child that was
  // forked meanwhile, which cannot finish the region: then it has not ended, and helpers never
  // will.
  bool run(int wake_ms, FunctionRef<void()> poll);
  bool run() {
    return run(50, [] {});
  }

 private:
  bool run_units();
  void wait(int64_t until_ns);
  bool ended() const { return slot_->pending.load(std::memory_order_seq_cst) == 0; }
  bool forked() const { return fork_generation() != units_.generation; }

  pool_detail::State& pool_;
  const pool_detail::Units units_;
  pool_detail::Slot* slot_ = nullptr;
  bool shared_ = false;  // helpers look at the slot
  std::atomic<bool> closed_{false};
};

}  // namespace treenail
