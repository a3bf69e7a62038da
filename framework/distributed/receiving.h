// SPDX-License-Identifier: Apache-2.0
// Asking another task for a value by a message. For several at once: grouped_receives.h.
#pragma once

#include <memory>

#include "framework/distributed/mpi_receiving.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// As AsyncKernel::start(): sets output 0. What the other task has failed with is the error. `way`:
// elements may come over MPI; null: they come in the answer.
void receive_by_message(const RpcPeer& peer, const protocol::ReceiveRequest& request,
                        const RunContext& c, const Done& done,
                        std::shared_ptr<MpiWay> way = nullptr);

}  // namespace treenail
