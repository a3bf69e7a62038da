// SPDX-License-Identifier: Apache-2.0
// Encrypted connections. Files of certificates are looked at again every few seconds, so that new
// ones serve without a restart.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "framework/distributed/rpc_api.h"

namespace treenail::grpc_adapter {

// Metadata in which a caller shows a token.
inline constexpr const char* kTokenKey = "treenail-token";

// Plain text where the options have no TLS. `service` outlives the server.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const RpcServerOptions& options,
                                                            const RpcService& service);
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const RpcTls* tls);

// What admit() said of whoever calls; empty in plain text.
std::string caller_of(const grpc::AuthContext& context);

}  // namespace treenail::grpc_adapter
