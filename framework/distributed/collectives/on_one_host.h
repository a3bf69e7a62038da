// SPDX-License-Identifier: Apache-2.0
// Ranks that MPI or gRPC has brought together on one host share memory, which is faster than
// messages; by messages they say where they meet, and whether all could.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/distributed/collectives/byte_exchange.h"
#include "framework/distributed/collectives/communicator.h"

namespace treenail {

struct OneHostLimits {
  int64_t join_timeout_ns;
  int64_t timeout_ns;  // as of SharedMemoryGroup
};

// Null, and *exchange left as it is, where one of them cannot: containers with namespaces of their
// own, a control group that grants no memory. Otherwise it owns *exchange, to close it at the end.
std::shared_ptr<Communicator> try_on_one_host(std::unique_ptr<ByteExchange>* exchange,
                                              const OneHostLimits& limits);

}  // namespace treenail
