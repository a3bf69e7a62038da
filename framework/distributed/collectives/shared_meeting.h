// SPDX-License-Identifier: Apache-2.0
// How ranks of one host find each other: each listens in the group's directory, connects to all
// lower ones, and is connected to by all higher ones. Rank 0 passes the table's segment.
#pragma once

#include <vector>

#include "framework/distributed/collectives/shared_memory_communicator.h"
#include "framework/distributed/shared_memory/shared_link.h"

namespace treenail {

struct SharedMeeting {
  std::vector<SharedLink> links;  // by rank; that of this rank is none
  IntrusivePtr<Segment> table;
};

// Errors: as of join_shared_memory().
SharedMeeting meet(const SharedMemoryGroup& group, size_t table_bytes);

}  // namespace treenail
