// SPDX-License-Identifier: Apache-2.0
// The process's one pool of threads. A caller splits its work into chunks by shape alone and takes
// part itself; helpers serve the regions of all callers in turn, chunk by chunk; they spin briefly
// (less where the machine is shared), then sleep. Pool threads never block on anything but the
// pool. Recipe and figures: performance.md section 11 ("Pool"). Who decides the number of chunks:
// the kernel, never the pool. Work that grows while it is done: work_region.h.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/function_ref.h"

namespace treenail {

class CancellationToken;

namespace pool_detail {
struct State;
State& state();
}  // namespace pool_detail

class ThreadPool {
 public:
  // The pool of this process. Threads start at the first region that can use one; after fork
  // the child gets a fresh pool. Never destroyed.
  static ThreadPool& instance();

  // Threads that work on one region, the caller included, and on the regions of so many callers
  // together; at least 1.
  int num_threads() const;
  // Takes effect when a region begins; fewer threads only once the whole pool is idle then. Errors:
  // InvalidArgument unless 1 <= n <= 1024.
  void set_num_threads(int n);
  // Who decided num_threads(): "TREENAIL_NUM_THREADS", "the affinity mask", ...
  std::string threads_origin() const;

  // Calls body(0) ... body(chunks - 1), each exactly once, from the caller and free helpers, and
  // returns when all have ended; meanwhile the caller runs chunks of this region only. Called from
  // inside a chunk it may share with helpers, too; called from inside a chunk of such an inner
  // region, or while 16 regions are under way, it is a plain loop on the caller. If chunks throw,
  // the exception of the lowest chunk is rethrown after all begun chunks ended. With a token, no
  // chunk begins after cancellation, and Cancelled is thrown. `cost_ns` estimates the work of all
  // chunks together on one thread. What is too small for the helpers that are awake, or for waking
  // one, runs as a plain loop; the results are the same. Errors: FailedPrecondition in the child,
  // where the process was forked meanwhile.
  void run_chunks(int64_t chunks, FunctionRef<void(int64_t)> body, double cost_ns,
                  const CancellationToken* token = nullptr);

  // Every pool thread calls `hook` once before its next chunk, threads started later and after fork
  // too (the BLAS adapter sets OpenMP's thread count, which is kept per thread, this way). A hook
  // given twice counts once. Errors: ResourceExhausted beyond 16 hooks.
  void add_thread_start_hook(void (*hook)());

  // Helpers started so far, for tests and diagnostics; 0 until a region could use one.
  int started_helpers() const;

 private:
  ThreadPool();
  friend pool_detail::State& pool_detail::state();
  pool_detail::State* state_;
};

// Affinity mask, cgroup quota (v1, v2; rounded up), SLURM_CPUS_PER_TASK: the smallest;
// TREENAIL_NUM_THREADS overrides. *origin (when not null) is which of them it was.
int default_num_threads(const char** origin = nullptr);

}  // namespace treenail
