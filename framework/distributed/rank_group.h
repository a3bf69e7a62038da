// SPDX-License-Identifier: Apache-2.0
// A group of processes without a launcher of MPI's: each rank listens at its own address, and calls
// all others by gRPC. Between ranks of one host that can share memory, that is used instead.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/distributed/collectives/communicator.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"

namespace treenail {

struct RankGroup {
  int rank = 0;
  std::vector<std::string> addresses;  // "host:port" of each rank, alike on all
  std::string listen;                  // instead of the rank's own; empty: that
  // Without credentials bytes pass unprotected: an address beyond this machine is refused unless
  // this says that the network is trusted.
  bool plain_text = false;
  bool prefer_shared_memory = true;
  int64_t join_timeout_ns = int64_t{60} * 1'000'000'000;
  int64_t timeout_ns = 0;  // as of SharedMemoryGroup
  RpcPatience patience;
  // Of certificates that name the ranks' hosts; null: nothing is encrypted.
  std::shared_ptr<const Credentials> credentials;
};

// What the rank tells the others first, with a token of its own. Errors: as of join_ranks().
protocol::RankHello greeting(const RankGroup& group);

struct RanksJoined {
  std::shared_ptr<Communicator> communicator;
  int local_rank = 0;  // among the ranks on this host
  int local_size = 1;
};

// Joins; all ranks must. Errors: Unimplemented without gRPC; InvalidArgument (no rank, an address
// that is none or another rank's, ranks that disagree); PermissionDenied (beyond loopback without
// plain_text); FailedPrecondition (another version, a rank that has joined twice); Unavailable and
// DeadlineExceeded, naming the rank, where not all come.
RanksJoined join_ranks(const RankGroup& group);

}  // namespace treenail
