// SPDX-License-Identifier: Apache-2.0
// Whether values of this process's tasks go over MPI: where one launcher has started as many
// processes as the cluster has tasks, so that each has a server, and shared memory does not reach
// all of them. What decides is the same on all ranks, for MPI begins and ends together.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "framework/distributed/mpi_values.h"

namespace treenail {

struct MpiChoice {
  std::shared_ptr<MpiValues> values;  // null: they do not
  std::string why_not;                // empty without a launcher of MPI's
};

// For a server of a cluster with so many tasks, and of its process the same ever after. Where MPI
// begins it waits for the other ranks, for half a minute at most; polls (base/interrupt.h).
// `encrypted`: what passes between the tasks otherwise. Errors: InvalidArgument for a value that
// the variable TREENAIL_MPI_VALUES cannot have.
MpiChoice mpi_of_process(size_t tasks, bool encrypted);

// What servers have from here on instead, for tests without a launcher; null: nothing.
void set_mpi_values(std::shared_ptr<MpiValues> values);

}  // namespace treenail
