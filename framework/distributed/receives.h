// SPDX-License-Identifier: Apache-2.0
// Requests of other tasks for values of this one's steps, answered when the values are there.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/worker.h"

namespace treenail {

class Receives {
 public:
  explicit Receives(Worker& worker);
  ~Receives();
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  void begin(const protocol::ReceiveRequest& request, const RpcAsked& asked);
  // Nobody waits for the answer.
  void cancelled(const RpcAsked& asked);

 private:
  class Waiting;
  std::unique_ptr<Waiting> remove(const RpcAsked& asked);

  Worker& worker_;
  // Held while a step is asked to forget a receiver, so that it is there until then.
  std::mutex mutex_;
  std::unordered_map<RpcCall*, std::unique_ptr<Waiting>> waiting_;
};

}  // namespace treenail
