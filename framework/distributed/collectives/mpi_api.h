// SPDX-License-Identifier: Apache-2.0
// What an MPI adapter offers its user (mpi_exchange.cc). Calls come from one thread at a time. All
// return 0 or an error: one of those below, or MPI's own number.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

enum MpiError : int32_t {
  kMpiEnded = -1,    // MPI_Finalize() was called before
  kMpiThreads = -2,  // another user has initialised MPI for the main thread alone
};

struct MpiPlace {
  int32_t rank, size;
  int32_t local_rank, local_size;  // on this host
  char version[64];                // "Open MPI v4.1.4"
};

struct MpiApi {
  AdapterHeader header;
  // Initialises MPI unless somebody has.
  int32_t (*initialize)(MpiPlace* place);
  // The bytes stay where they are until test() says that it is done. Messages of one peer and tag
  // arrive in order.
  int32_t (*send)(const void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket);
  int32_t (*receive)(void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket);
  int32_t (*test)(uint64_t* ticket, int32_t* done);
  // Whether a message of the tag has come, from any peer: *peer is -1 where none has.
  int32_t (*probe)(int32_t tag, int32_t* peer, int32_t* count);
  // All ranks call it; ends MPI where initialize() began it.
  int32_t (*finalize)();
  // What MPI says of an error of its own.
  void (*say)(int32_t error, char* text, int32_t room);
};

}  // namespace treenail
