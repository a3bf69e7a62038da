// SPDX-License-Identifier: Apache-2.0
// Values that a piece receives from one task by message and that are asked for together, since a
// message costs more than they do: small ones, which come in the answer, and large ones whose
// elements come over MPI. Those that are there are answered together. What waits is asked for
// again, so that no value waits for another.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/distributed/mpi_receiving.h"
#include "framework/distributed/neighbours.h"
#include "framework/distributed/rpc.h"
#include "framework/graph/graph.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// Of the _Recv nodes of a piece, by what is known of their values.
struct GroupedReceives {
  struct Group {
    std::map<std::string, size_t, std::less<>> by_task;  // how many at most
    std::set<std::string, std::less<>> keys;
  };
  Group small;     // they cost less than their message
  Group over_mpi;  // where MPI has both tasks
};
GroupedReceives grouped_receives(const Graph& piece);

// One step's of one group, of one task.
class ReceiveCollector final : public LaterWork,
                               public std::enable_shared_from_this<ReceiveCollector> {
 public:
  struct Wanted {
    std::string key;
    RunContext c;
    Done done;
    uint64_t mpi_tag = 0;  // 0: it comes in the answer
  };
  // `most`: when so many were added there will be no more. `way`: elements come over MPI; null: in
  // the answer.
  ReceiveCollector(const RpcPeer& peer, uint64_t step, size_t most, std::shared_ptr<MpiWay> way)
      : peer_(peer), step_(step), most_(most), way_(std::move(way)) {}

  // As AsyncKernel::start(): sets output 0. Asked for at once where it is the last, else soon.
  void add(Wanted wanted, Neighbours& neighbours);
  void run() noexcept override;

 private:
  const RpcPeer& peer_;
  const uint64_t step_;
  const size_t most_;
  const std::shared_ptr<MpiWay> way_;
  std::mutex mutex_;  // guards what follows
  std::vector<Wanted> wanted_;
  size_t added_ = 0;
};

}  // namespace treenail
