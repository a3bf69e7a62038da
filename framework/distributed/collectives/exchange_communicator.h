// SPDX-License-Identifier: Apache-2.0
// A group over any ByteExchange. A rank tells all others what it asks for in a note, which brings
// small values along; large ones travel once all agree: to each rank the slice that it reduces, in
// the order of ranks, and from there to all.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/distributed/collectives/byte_exchange.h"
#include "framework/distributed/collectives/communicator.h"

namespace treenail {

// timeout_ns: as of SharedMemoryGroup.
std::shared_ptr<Communicator> exchange_communicator(std::unique_ptr<ByteExchange> exchange,
                                                    int64_t timeout_ns);

}  // namespace treenail
