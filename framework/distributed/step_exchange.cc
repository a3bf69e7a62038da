// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/step_exchange.h"

#include <string>
#include <utility>

#include "framework/distributed/calling_pieces.h"
#include "framework/distributed/receiving.h"

namespace treenail {

void StepExchange::send(std::string_view key, Tensor value) { own_.send(key, std::move(value)); }

void StepExchange::receive(std::string_view key, std::string_view from, RunContext c, Done done) {
  const RpcPeer& peer = peer_(from);
  const protocol::ReceiveRequest request{step_, std::string(key)};
  if (neighbours_.receive(from, peer, request, c, done)) return;
  if (ReceiveCollector* const several = collector(key, from, peer)) {
    several->add({request.key, c, done}, neighbours_);
  } else {
    receive_by_message(peer, request, c, done, neighbours_.mpi_way(from));
  }
}

void StepExchange::run_piece(const PieceAt& piece, RunContext c, Done done) {
  call_piece(peer_(piece.task),
             {request_.session, piece.number, request_.timeout_ms, step_, piece.incarnation}, piece,
             c, done);
}

// Null: the value is asked for by itself.
ReceiveCollector* StepExchange::collector(std::string_view key, std::string_view from,
                                          const RpcPeer& peer) {
  const auto known = small_.by_task.find(from);
  if (known == small_.by_task.end() || known->second < 2 || !small_.keys.contains(key))
    return nullptr;
  const std::lock_guard lock(mutex_);
  auto& made = collectors_.try_emplace(std::string(from)).first->second;
  if (made == nullptr) made = std::make_shared<ReceiveCollector>(peer, step_, known->second);
  return made.get();
}

}  // namespace treenail
