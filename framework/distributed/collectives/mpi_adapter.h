// SPDX-License-Identifier: Apache-2.0
// The MPI of this process. Which implementation is used: TREENAIL_MPI ("openmpi" or "mpich"), else
// that whose library the process has loaded already, else that whose launcher's variables are
// there, else the one that is installed.
#pragma once

#include <cstdint>
#include <string>

#include "framework/distributed/collectives/mpi_api.h"

namespace treenail {

struct MpiWorld {
  const MpiApi* api;
  MpiPlace place;
};

// How a user calls: so that another of this process, mpi4py say, must not call meanwhile, or not.
enum class MpiUse : uint8_t { kOneThreadAtATime, kBesideOthers };

// Begins MPI for one more user, who ends with api->finalize(); waits for all ranks. `announced`:
// how many processes the launcher speaks of. Errors: Unimplemented without the adapter or its MPI,
// naming packages; FailedPrecondition where several processes are announced and MPI sees one, or
// where MPI was initialised for too few threads or has ended; Unavailable.
MpiWorld begin_mpi(int announced, MpiUse use);

// What MPI says of it.
std::string mpi_error_text(const MpiApi& api, int32_t error);

}  // namespace treenail
