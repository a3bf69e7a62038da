// SPDX-License-Identifier: Apache-2.0
// Requests of other tasks for several values of this one's steps (grouped_receives.h): answered
// soon after the first of them is there, with all that are there by then.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/worker.h"

namespace treenail {

class ReceivesSome {
 public:
  explicit ReceivesSome(Worker& worker);
  ~ReceivesSome();
  ReceivesSome(const ReceivesSome&) = delete;
  ReceivesSome& operator=(const ReceivesSome&) = delete;

  void begin(const protocol::ReceiveSomeRequest& request, const RpcAsked& asked);
  // Nobody waits for the answer.
  void cancelled(const RpcAsked& asked);

 private:
  class Batch;
  void remove(const RpcAsked& asked);

  Worker& worker_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<RpcCall*, std::shared_ptr<Batch>> waiting_;
};

}  // namespace treenail
