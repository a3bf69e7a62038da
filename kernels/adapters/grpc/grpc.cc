// SPDX-License-Identifier: Apache-2.0
// gRPC behind rpc_api.h.
#include "build_info.h"
#include "framework/distributed/rpc_api.h"
#include "kernels/adapters/grpc/client.h"
#include "kernels/adapters/grpc/server.h"

extern "C" const void* treenail_adapter(void);

const void* treenail_adapter(void) {
  using namespace treenail::grpc_adapter;
  static constexpr treenail::RpcApi kApi = {
      {sizeof(treenail::RpcApi), treenail::build_info::kVersion},
      serve,
      port,
      stop,
      reply,
      refuse,
      abandoned,
      connect,
      disconnect,
      call,
      start,
      cancel,
      forget};
  return &kApi;
}
