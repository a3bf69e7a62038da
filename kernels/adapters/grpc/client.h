// SPDX-License-Identifier: Apache-2.0
// The client half of rpc_api.h.
#pragma once

#include "framework/distributed/rpc_api.h"

namespace treenail::grpc_adapter {

RpcChannel* connect(const RpcChannelOptions* options, RpcStatus* status);
void disconnect(RpcChannel* channel);
void call(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer,
          bool (*poll)(void*), void* poll_argument);
RpcPending* start(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer);
void cancel(RpcPending* pending);
void forget(RpcPending* pending);

}  // namespace treenail::grpc_adapter
