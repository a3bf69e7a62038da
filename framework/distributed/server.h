// SPDX-License-Identifier: Apache-2.0
// A server: the worker and the master of one task, reached by others through one port.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/distributed/access.h"
#include "framework/distributed/cluster.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/limits.h"
#include "framework/distributed/neighbours.h"
#include "framework/distributed/rpc.h"

namespace treenail {

struct ServerOptions {
  ClusterSpec cluster;
  TaskName task;
  // Where it listens, "host:port"; empty: at its address in the cluster. Port 0: any that is free.
  std::string listen;
  // With a certificate all that passes is encrypted, and callers are known. Null: neither.
  std::shared_ptr<const Credentials> credentials;
  // Without, anybody who reaches the port can use the server: an address beyond this machine is
  // refused unless this says that the network is trusted.
  bool plain_text = false;
  std::vector<std::string> open_to;  // identities of clients; none: all that are known
  AccessRules access;
  Limits limits;
  std::map<std::string, int> device_count;  // as SessionOptions
  RpcPatience patience;
};

class Server {
 public:
  // Listens from here on. Errors: NotFound and InvalidArgument (a task that the cluster does not
  // have, an address that is none, credentials without a certificate or a way to know callers; as
  // AccessCheck), PermissionDenied (beyond loopback without credentials and without plain_text),
  // Unavailable (the address is taken), Unimplemented (no gRPC).
  explicit Server(const ServerOptions& options);
  // Steps that run here are cancelled.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // What a session of this process or another is opened with: "grpc://localhost:2222".
  std::string target() const;
  // How values come from the tasks that this one has received from.
  std::vector<Transport> transports() const;
  // What Limits::held_bytes counts, by identity; "" where the server knows nobody.
  std::map<std::string, int64_t> held_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treenail
