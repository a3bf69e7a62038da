// SPDX-License-Identifier: Apache-2.0
// The pool's interface, its fate in a forked child, and the owner's side of a region of chunks: the
// owner spins on the count of chunks that have not ended, then sleeps, too, so that the kernel can
// move a stuck helper to its CPU. Slots: pool_slots.cc; the threads: pool_helpers.cc.
#include "framework/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/pool_state.h"
#include "framework/base/spin.h"

namespace treenail {
namespace {

using pool_detail::Chunks;
using pool_detail::Slot;
using pool_detail::State;
using pool_detail::this_thread;
using pool_detail::ThreadState;

// For the fork handler, which must not run into instance()'s initialisation.
State* live = nullptr;

// The child has one thread. Whatever the others held or counted is gone, so the pool begins anew in
// place; the settings stay. A region in flight on the forking thread sees the new generation and
// fails.
void after_fork_in_child() {
  State* old = live;
  State::Hook hooks[pool_detail::kMaxHooks];
  for (int i = 0; i < pool_detail::kMaxHooks; ++i) {
    hooks[i] = old->hooks[i].load(std::memory_order_relaxed);
  }
  const int threads = old->threads.load(std::memory_order_relaxed);
  const char* origin = old->origin.load(std::memory_order_relaxed);
  State* fresh = new (old) State;
  fresh->threads.store(threads, std::memory_order_relaxed);
  fresh->origin.store(origin, std::memory_order_relaxed);
  for (int i = 0; i < pool_detail::kMaxHooks; ++i) {
    fresh->hooks[i].store(hooks[i], std::memory_order_relaxed);
  }
  this_thread = {};
}

void plain_loop(int64_t chunks, FunctionRef<void(int64_t)> body, const CancellationToken* token) {
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (token != nullptr) token->check();
    body(chunk);
  }
}

void wait_for_helpers(const State& pool, Slot& slot) {
  int64_t deadline = 0;
  for (int spins = 1; slot.pending.load(std::memory_order_acquire) != 0; ++spins) {
    spin_pause();
    if (spins % 32 != 0) continue;
    const int64_t now = monotonic_ns();
    if (deadline == 0) deadline = now + pool.spin_ns.load(std::memory_order_relaxed);
    if (now < deadline) continue;
    constexpr uint32_t kSleeps = pool_detail::kCallerSleeps;
    uint32_t seen = slot.pending.fetch_or(kSleeps, std::memory_order_acq_rel) | kSleeps;
    while (seen != kSleeps) {
      futex_wait(&slot.pending, seen);
      seen = slot.pending.load(std::memory_order_acquire);
    }
    return;
  }
}

// Runs what the ticket counts of `chunks`, in a slot that the caller took, and waits for its end.
// False in a child forked meanwhile. What chunks threw is left in `chunks`.
bool run_in_slot(State& pool, ThreadState& me, Slot& slot, Chunks& chunks, int wake) {
  slot.chunks = &chunks;
  slot.pending.store(chunks.count, std::memory_order_relaxed);
  slot.publish(chunks.count);
  if (wake > 0) pool.wake_helpers(wake);
  uint32_t ended = 0;
  me.depth = chunks.depth;
  for (uint32_t left; (left = slot.claim(false)) != 0; ++ended) {
    if (!chunks.run(chunks.count - left)) return false;
    if (left > 2) pool.reconsider(slot);
  }
  me.depth = chunks.depth - 1;
  slot.count_chunks_ended(ended);
  wait_for_helpers(pool, slot);
  return true;
}

}  // namespace

pool_detail::State& pool_detail::state() { return *ThreadPool::instance().state_; }

ThreadPool::ThreadPool() : state_(new State) {
  try {
    const char* origin = nullptr;
    state_->threads.store(default_num_threads(&origin), std::memory_order_relaxed);
    state_->origin.store(origin, std::memory_order_relaxed);
  } catch (...) {
    delete state_;
    throw;
  }
}

ThreadPool& ThreadPool::instance() {
  static std::atomic<ThreadPool*> pool{nullptr};
  return made_once(pool, [] {
    auto* made = new ThreadPool;
    live = made->state_;
    pthread_atfork(nullptr, nullptr, &after_fork_in_child);
    return made;
  });
}

int ThreadPool::num_threads() const { return state_->threads.load(std::memory_order_relaxed); }

int ThreadPool::started_helpers() const { return state_->helpers.load(std::memory_order_relaxed); }

void ThreadPool::set_num_threads(int n) {
  if (n < 1 || n > pool_detail::kMaxThreads) {
    throw invalid_argument("number of threads is ", n, "; needed is 1 to ",
                           pool_detail::kMaxThreads);
  }
  state_->threads.store(n, std::memory_order_relaxed);
  state_->origin.store("the program", std::memory_order_relaxed);
}

std::string ThreadPool::threads_origin() const {
  return state_->origin.load(std::memory_order_relaxed);
}

void ThreadPool::add_thread_start_hook(void (*hook)()) {
  for (auto& slot : state_->hooks) {
    State::Hook expected = nullptr;
    if (slot.compare_exchange_strong(expected, hook, std::memory_order_acq_rel) ||
        expected == hook) {
      return;
    }
  }
  throw resource_exhausted("more than ", pool_detail::kMaxHooks, " thread start hooks");
}

void ThreadPool::run_chunks(int64_t chunks, FunctionRef<void(int64_t)> body, double cost_ns,
                            const CancellationToken* token) {
  State& pool = *state_;
  // The cheap tests come first: small work touches no shared cache line and no clock.
  if (chunks < 2 || cost_ns < pool_detail::kHotSerialNs ||
      pool.threads.load(std::memory_order_relaxed) < 2) {
    return plain_loop(chunks, body, token);
  }
  ThreadState& me = this_thread;
  Slot* const slot = me.depth < pool_detail::kDeepest ? pool.take_slot(me) : nullptr;
  if (slot == nullptr) return plain_loop(chunks, body, token);
  const uint32_t generation = fork_generation();
  const int wake = pool.prepare(me, *slot, cost_ns, chunks - 1);
  if (wake < 0) {
    State::give_up(*slot, generation);
    return plain_loop(chunks, body, token);
  }
  Chunks region(body, me.depth + 1, token);
  bool finished = true;
  for (int64_t first = 0; first < chunks && finished && !region.failed();
       first += pool_detail::kMaxChunksPerTicket) {
    region.first = first;
    region.count =
        static_cast<uint32_t>(std::min(chunks - first, pool_detail::kMaxChunksPerTicket));
    finished = run_in_slot(pool, me, *slot, region, wake);
  }
  State::give_up(*slot, generation);
  if (!finished) {
    throw failed_precondition(
        "the process was forked while this work was in flight; the child cannot finish it");
  }
  if (region.error) std::rethrow_exception(region.error);
  if (region.cancelled.load(std::memory_order_relaxed)) token->check();
}

}  // namespace treenail
