// SPDX-License-Identifier: Apache-2.0
// The adapter of Open MPI.
#include "kernels/adapters/mpi/mpi_calls.h"
