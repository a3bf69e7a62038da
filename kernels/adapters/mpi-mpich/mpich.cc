// SPDX-License-Identifier: Apache-2.0
// The adapter of MPICH, and of what has its binary interface.
#include "kernels/adapters/mpi/mpi_calls.h"
