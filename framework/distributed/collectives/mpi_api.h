// SPDX-License-Identifier: Apache-2.0
// What an MPI adapter offers its users: groups of processes (mpi_exchange.cc), and values between
// tasks (distributed/mpi_values.h). Both may be in one process, and share one communicator, which
// is nobody else's, and its tags. Calls come from any thread. All return 0 or an error: one of
// those below, or MPI's own number.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

enum MpiError : int32_t {
  kMpiEnded = -1,    // MPI_Finalize() has been called
  kMpiThreads = -2,  // another user has initialised MPI for fewer threads
};

// Which tags are whose.
inline constexpr int32_t kMpiGroupTags = 1 << 15;  // below: groups'

inline constexpr int kMpiTokenBytes = 32;

struct MpiPlace {
  int32_t rank, size;
  int32_t local_rank, local_size;  // on this host
  int32_t tag_limit;               // the largest tag
  int32_t begun_here;              // by initialize(), which then ends it as well
  char version[64];                // "Open MPI v4.1.4"
};

struct MpiApi {
  AdapterHeader header;
  // Initialises MPI unless somebody has; all ranks call it, each for its first user. `token` is
  // told to all ranks, once. `beside_others`: calls are to come while other users of MPI in this
  // process, if there are any, call it as well. Each user ends with finalize().
  int32_t (*initialize)(const uint8_t* token, int32_t beside_others, MpiPlace* place);
  // What the rank has told.
  void (*token_of)(int32_t rank, uint8_t* token);
  // The bytes stay where they are until test() says that it is done. Messages of one peer and tag
  // arrive in order.
  int32_t (*send)(const void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket);
  int32_t (*receive)(void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket);
  // *received, where it is not null: how many bytes have come when it is done.
  int32_t (*test)(uint64_t* ticket, int32_t* done, int32_t* received);
  // Nobody waits for it any more; it is done soon, if it is a receive for which nothing has come.
  int32_t (*cancel)(uint64_t* ticket);
  // Whether a message of the tag has come, from the rank `from` or, where that is -1, from any:
  // *peer is -1 where none has.
  int32_t (*probe)(int32_t from, int32_t tag, int32_t* peer, int32_t* count);
  // Done when all ranks have called it.
  int32_t (*meet)(uint64_t* ticket);
  // The last user's: all ranks call it; ends MPI where initialize() began it.
  int32_t (*finalize)();
  // What MPI says of an error of its own.
  void (*say)(int32_t error, char* text, int32_t room);
};

}  // namespace treenail
