// SPDX-License-Identifier: Apache-2.0
// Threads for work that blocks (Python functions, file I/O), which the pool must not wait for:
// there are always as many as there is work, so that none of it waits for the end of another. An
// idle thread ends after some seconds.
#pragma once

#include <memory>

namespace treenail {

class BlockingWork {
 public:
  virtual ~BlockingWork();
  // On a thread of its own, all signals blocked.
  virtual void run() noexcept = 0;
};

// Never blocks. Errors: ResourceExhausted where the system gives no thread. The child of a fork has
// none of the work.
void run_blocking(std::unique_ptr<BlockingWork> work);

}  // namespace treenail
