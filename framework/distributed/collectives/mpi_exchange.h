// SPDX-License-Identifier: Apache-2.0
// Groups that an MPI launcher has started. Which implementation is used: mpi_adapter.h.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/distributed/collectives/communicator.h"

namespace treenail {

struct MpiGroup {
  int announced = 1;  // how many processes the launcher speaks of
  // Over shared memory where all ranks are on one host and can share it.
  bool prefer_shared_memory = true;
  int64_t join_timeout_ns = int64_t{60} * 1'000'000'000;
  int64_t timeout_ns = 0;
};

struct MpiJoined {
  std::shared_ptr<Communicator> communicator;
  int local_rank = 0;
  int local_size = 1;
};

// Errors: as begin_mpi().
MpiJoined join_mpi(const MpiGroup& group);

}  // namespace treenail
