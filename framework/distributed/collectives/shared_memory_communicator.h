// SPDX-License-Identifier: Apache-2.0
// The group of processes on one host. What each rank asks for stands in a table of its own in
// shared memory, which the others read; so do the values. A rank that waits sleeps on its sockets,
// over which it is woken, is passed segments, and sees at once when a peer's process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/distributed/collectives/communicator.h"

namespace treenail {

struct SharedMemoryGroup {
  int rank = 0;
  int size = 1;
  // A directory of this user's alone where the ranks meet; it is made. The same for all ranks, and
  // for no other group.
  std::string directory;
  int64_t join_timeout_ns = int64_t{60} * 1'000'000'000;
  // How long an execution may wait for other ranks; 0: for as long as they live.
  int64_t timeout_ns = 0;
};

// Joins; all ranks must. Errors: DeadlineExceeded and Unavailable where not all come, or where they
// are on several hosts or in containers with other network or mount namespaces; ResourceExhausted;
// PermissionDenied; FailedPrecondition where another version of Treenail answers.
std::shared_ptr<Communicator> join_shared_memory(const SharedMemoryGroup& group);

}  // namespace treenail
