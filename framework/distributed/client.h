// SPDX-License-Identifier: Apache-2.0
// What a client asks of a server: sessions, and to forget what these have left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/distributed/rpc.h"
#include "framework/runtime/run/remote_session.h"

namespace treenail {

struct ClientOptions {
  // Of the cluster's tasks the session knows the server's own and those that a name of these covers
  // ("/job:ps"); it waits for no other. None: all.
  std::vector<std::string> device_filters;
  RpcPatience patience;  // with the server
  // A file (credentials.h) that says what is shown to it; "": the one that TREENAIL_CREDENTIALS
  // names, or none.
  std::string credentials;
  // What float32 values are rounded to that go from task to task: kBFloat16, kFloat16, or kInvalid
  // for nothing.
  DType sent_as = DType::kInvalid;
};

// For SessionOptions::remote of a session with that graph and these options. `target`:
// "grpc://host:port". Waits until all tasks that it is to know are there. Errors: InvalidArgument
// for a target and a filter that is none and as credentials_from(), Unauthenticated and
// PermissionDenied where the server does not want this client, Unavailable where no server listens,
// Unimplemented where this Treenail has no gRPC.
std::shared_ptr<RemoteSession> open_remote_session(const std::string& target,
                                                   const std::shared_ptr<Graph>& graph,
                                                   const SessionOptions& options,
                                                   const ClientOptions& client = {});

// The state of these containers goes, or of all where none is named, at every task of the server's
// cluster, and the server's sessions end. Errors: as open_remote_session.
void reset_cluster(const std::string& target, const std::vector<std::string>& containers,
                   const std::string& credentials = "");

}  // namespace treenail
