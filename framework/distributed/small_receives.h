// SPDX-License-Identifier: Apache-2.0
// Small values that a piece receives from one task by message: asked for together, and those that
// are there come together, since a message costs more than they do. What waits is asked for again,
// so that no value waits for another.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "framework/distributed/neighbours.h"
#include "framework/distributed/rpc.h"
#include "framework/graph/graph.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// Of a piece, the _Recv nodes whose values are known to be small.
struct SmallReceives {
  std::map<std::string, size_t, std::less<>> by_task;  // how many at most
  std::set<std::string, std::less<>> keys;
};
SmallReceives small_receives(const Graph& piece);

// One step's, of one task.
class ReceiveCollector final : public LaterWork,
                               public std::enable_shared_from_this<ReceiveCollector> {
 public:
  struct Wanted {
    std::string key;
    RunContext c;
    Done done;
  };
  // `most`: when so many were added there will be no more.
  ReceiveCollector(const RpcPeer& peer, uint64_t step, size_t most)
      : peer_(peer), step_(step), most_(most) {}

  // As AsyncKernel::start(): sets output 0. Asked for at once where it is the last, else soon.
  void add(Wanted wanted, Neighbours& neighbours);
  void run() noexcept override;

 private:
  const RpcPeer& peer_;
  const uint64_t step_;
  const size_t most_;
  std::mutex mutex_;  // guards what follows
  std::vector<Wanted> wanted_;
  size_t added_ = 0;
};

}  // namespace treenail
