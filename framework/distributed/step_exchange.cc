// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/step_exchange.h"

#include <string>
#include <utility>

#include "framework/distributed/receiving.h"

namespace treenail {

void StepExchange::send(std::string_view key, Tensor value) { own_.send(key, std::move(value)); }

void StepExchange::receive(std::string_view key, std::string_view from, RunContext c, Done done) {
  const RpcPeer& peer = peer_(from);
  const protocol::ReceiveRequest request{step_, std::string(key)};
  if (!neighbours_.receive(from, peer, request, c, done))
    receive_by_message(peer, request, c, done);
}

}  // namespace treenail
