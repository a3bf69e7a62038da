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
  if (ReceiveCollector* const small = collector(small_, key, from, peer, nullptr))
    return small->add({request.key, c, done}, neighbours_);
  const std::shared_ptr<MpiWay> way = neighbours_.mpi_way(from);
  ReceiveCollector* const large =
      way == nullptr ? nullptr : collector(over_mpi_, key, from, peer, way);
  if (large != nullptr) return large->add({request.key, c, done}, neighbours_);
  receive_by_message(peer, request, c, done, way);
}

void StepExchange::run_piece(const PieceAt& piece, RunContext c, Done done) {
  call_piece(peer_(piece.task),
             {request_.session, piece.number, request_.timeout_ms, step_, piece.incarnation}, piece,
             c, done);
}

// Null: the value is asked for by itself.
ReceiveCollector* StepExchange::collector(Collecting& collecting, std::string_view key,
                                          std::string_view from, const RpcPeer& peer,
                                          const std::shared_ptr<MpiWay>& way) {
  const GroupedReceives::Group& group = collecting.group;
  const auto known = group.by_task.find(from);
  if (known == group.by_task.end() || known->second < 2 || !group.keys.contains(key))
    return nullptr;
  const std::lock_guard lock(mutex_);
  auto& made = collecting.by_task.try_emplace(std::string(from)).first->second;
  if (made == nullptr) made = std::make_shared<ReceiveCollector>(peer, step_, known->second, way);
  return made.get();
}

}  // namespace treenail
