// SPDX-License-Identifier: Apache-2.0
// What a client asks of a server: sessions, and to forget what these have left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/run/remote_session.h"

namespace treenail {

// For SessionOptions::remote of a session with that graph and these options. `target`:
// "grpc://host:port". `credentials`: a file (credentials.h) that says what is shown to it; "": the
// one that TREENAIL_CREDENTIALS names, or none. Waits until all tasks of the server's cluster are
// there. Errors: InvalidArgument for a target that is none and as credentials_from(),
// Unauthenticated and PermissionDenied where the server does not want this client, Unavailable
// where no server listens, Unimplemented where this Treenail has no gRPC.
std::shared_ptr<RemoteSession> open_remote_session(const std::string& target,
                                                   const std::shared_ptr<Graph>& graph,
                                                   const SessionOptions& options,
                                                   const std::string& credentials = "");

// The state of these containers goes, or of all where none is named, at every task of the server's
// cluster, and the server's sessions end. Errors: as open_remote_session.
void reset_cluster(const std::string& target, const std::vector<std::string>& containers,
                   const std::string& credentials = "");

}  // namespace treenail
