// SPDX-License-Identifier: Apache-2.0
// The Exchange of a piece's run: what it sends waits in this task's rendezvous, what it receives is
// asked for at the task that sends it, by shared memory where that is on this host, else by
// message, and then its elements come over MPI where that has both tasks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/function_ref.h"
#include "framework/distributed/grouped_receives.h"
#include "framework/distributed/neighbours.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rendezvous.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/kernel/kernel_exchange.h"

namespace treenail {

class StepExchange final : public Exchange {
 public:
  // `peer`: by the name of its task.
  using PeerOf = FunctionRef<const RpcPeer&(std::string_view task)>;
  // `request`: that this run answers. `receives`: of the piece.
  StepExchange(const protocol::RunRequest& request, Rendezvous& own, Neighbours& neighbours,
               const GroupedReceives& receives, PeerOf peer)
      : request_(request),
        step_(request.step),
        own_(own),
        neighbours_(neighbours),
        peer_(peer),
        small_{receives.small, {}},
        over_mpi_{receives.over_mpi, {}} {}

  void send(std::string_view key, Tensor value) override;
  void receive(std::string_view key, std::string_view from, RunContext c, Done done) override;
  void run_piece(const PieceAt& piece, RunContext c, Done done) override;

 private:
  struct Collecting {
    const GroupedReceives::Group& group;
    std::map<std::string, std::shared_ptr<ReceiveCollector>, std::less<>> by_task;
  };
  ReceiveCollector* collector(Collecting& collecting, std::string_view key, std::string_view from,
                              const RpcPeer& peer, const std::shared_ptr<MpiWay>& way);

  const protocol::RunRequest& request_;
  const uint64_t step_;
  Rendezvous& own_;
  Neighbours& neighbours_;
  const PeerOf peer_;
  std::mutex mutex_;  // guards what follows
  Collecting small_, over_mpi_;
};

}  // namespace treenail
