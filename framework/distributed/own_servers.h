// SPDX-License-Identifier: Apache-2.0
// The servers that run in this process, so that its sessions are known to them: these may do there
// what the process may do anyway.
#pragma once

#include <memory>
#include <string>

#include "framework/distributed/credentials.h"

namespace treenail {

struct OwnServer {
  std::string secret;  // shown to it by whoever is of its process; "": there is no such server here
  std::shared_ptr<const Credentials> credentials;
};

// Until it is destroyed. Not for a server whose secret would pass a network in plain text.
class OwnServerEntry {
 public:
  OwnServerEntry(std::string address, OwnServer server);
  ~OwnServerEntry();
  OwnServerEntry(const OwnServerEntry&) = delete;
  OwnServerEntry& operator=(const OwnServerEntry&) = delete;

 private:
  const std::string address_;
};

// "host:port", of which this machine has several.
OwnServer own_server(const std::string& address);

}  // namespace treenail
