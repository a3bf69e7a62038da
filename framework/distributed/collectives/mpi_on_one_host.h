// SPDX-License-Identifier: Apache-2.0
// Ranks that MPI has brought together on one host share memory, which is faster than its messages;
// MPI says where they meet, and whether all could.
#pragma once

#include <memory>

#include "framework/distributed/collectives/byte_exchange.h"
#include "framework/distributed/collectives/mpi_exchange.h"

namespace treenail {

// Null, and *exchange left as it is, where one of them cannot: containers with namespaces of their
// own, a control group that grants no memory. Otherwise it owns *exchange, to close it at the end.
std::shared_ptr<Communicator> try_on_one_host(std::unique_ptr<ByteExchange>* exchange,
                                              const MpiGroup& group);

}  // namespace treenail
