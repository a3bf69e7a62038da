// SPDX-License-Identifier: Apache-2.0
// The server half of rpc_api.h.
#pragma once

#include "framework/distributed/rpc_api.h"

namespace treenail::grpc_adapter {

RpcServer* serve(const RpcServerOptions* options, const RpcService* service, RpcStatus* status);
int32_t port(const RpcServer* server);
void stop(RpcServer* server, int64_t grace_ms);
void reply(RpcCall* call, const RpcSlice* slices, size_t num_slices);
void refuse(RpcCall* call, int32_t code, const char* text, size_t text_bytes);
bool abandoned(const RpcCall* call);

}  // namespace treenail::grpc_adapter
