// SPDX-License-Identifier: Apache-2.0
// What a rank answers to the others of its group.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "framework/distributed/callers.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rank_inbox.h"
#include "framework/distributed/rpc.h"

namespace treenail {

class RankService final : public RpcHandler {
 public:
  RankService(protocol::RankHello own, std::shared_ptr<RankInbox> inbox, Admission admission);

  std::vector<RpcMethod> methods() const override;
  Caller admit(std::span<const std::string_view> names, std::string_view token) override;
  void check_method(size_t method, const Caller& caller) override;
  void handle(size_t method, const Caller& caller, const Message& request,
              const RpcAsked& asked) override;
  void handle_bytes(size_t method, const Caller& caller, std::span<const RpcView> request,
                    const RpcAsked& asked) override;
  void cancelled(const RpcAsked& asked) override;

  // Waits until all other ranks have said hello: then none of them still looks for this one, which
  // may leave as soon as it likes. Polls (base/interrupt.h). -1, or a rank that has not by then.
  int64_t wait_for_greetings(int64_t deadline_ns);

  // Tells those who watch that this rank has left in order.
  void say_farewell();

  // Errors: FailedPrecondition for another version, InvalidArgument for another group.
  void check(const protocol::RankHello& theirs) const;

 private:
  void hello(const Message& request, const RpcAsked& asked);
  void watch(const RpcAsked& asked);
  void check(const protocol::RankBytes& said) const;

  const protocol::RankHello own_;
  const std::shared_ptr<RankInbox> inbox_;
  const Admission admission_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable greeted_;
  std::map<uint64_t, std::string> tokens_;  // of the ranks that have said hello
  std::set<uint64_t> greeted_by_;           // of these, who was answered
  std::map<RpcCall*, RpcAsked> watchers_;
  bool leaving_ = false;
};

}  // namespace treenail
