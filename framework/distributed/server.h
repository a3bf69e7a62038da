// SPDX-License-Identifier: Apache-2.0
// A server: the worker and the master of one task, reached by others through one port.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "framework/distributed/cluster.h"
#include "framework/distributed/rpc.h"

namespace treenail {

struct ServerOptions {
  ClusterSpec cluster;
  TaskName task;
  // Where it listens, "host:port"; empty: at its address in the cluster. Port 0: any that is free.
  std::string listen;
  // Beyond this machine anybody who reaches the port could run what he likes: such an address is
  // refused unless this says that the network is trusted.
  bool plain_text = false;
  std::map<std::string, int> device_count;  // as SessionOptions
  RpcPatience patience;
};

class Server {
 public:
  // Listens from here on. Errors: NotFound and InvalidArgument (a task that the cluster does not
  // have, an address that is none), PermissionDenied (beyond loopback without plain_text),
  // Unavailable (the address is taken), Unimplemented (no gRPC).
  explicit Server(const ServerOptions& options);
  // Steps that run here are cancelled.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // What a session of this process or another is opened with: "grpc://localhost:2222".
  std::string target() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treenail
