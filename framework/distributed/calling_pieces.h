// SPDX-License-Identifier: Apache-2.0
// Having another task run a piece for a node of this one: what a function's body has on other
// tasks. Values go along with the request and with the answer, so calls of several iterations, or
// of several runs, have nothing to mix up, and none leaves anything behind.
#pragma once

#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/kernel/kernel_exchange.h"

namespace treenail {

// As AsyncKernel::start(): the inputs are the piece's feeds, its fetches the outputs. An error of a
// node there is told as one of a node here, with the calls around it.
void call_piece(const RpcPeer& peer, const protocol::RunRequest& request, const PieceAt& piece,
                RunContext c, const Done& done);

}  // namespace treenail
