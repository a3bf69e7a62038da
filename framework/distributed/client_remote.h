// SPDX-License-Identifier: Apache-2.0
// The server that a client's session is at, and what the server keeps for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/run/remote_session.h"

namespace treenail {

struct Remote {
  Remote(const std::string& address, std::shared_ptr<const Credentials> credentials,
         const RpcPatience& patience = {})
      : peer(concat("the server ", address), address, patience, std::move(credentials)) {}

  const RpcPeer peer;
  std::string session;  // what the server calls it
};

class ClientPlan final : public RemotePlan {
 public:
  ClientPlan(std::shared_ptr<const Remote> remote, uint64_t number, int64_t epoch)
      : remote_(std::move(remote)), number(number), epoch(epoch) {}
  ~ClientPlan() override {
    remote_->peer.tell(protocol::master::kForgetPlan,
                       protocol::write(protocol::Handle{remote_->session, number}));
  }

 private:
  const std::shared_ptr<const Remote> remote_;

 public:
  const uint64_t number;
  const int64_t epoch;  // of the graph
};

}  // namespace treenail
