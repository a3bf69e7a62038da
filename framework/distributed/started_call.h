// SPDX-License-Identifier: Apache-2.0
// A call that was started and will be answered: one message each way, or, where that is too long,
// its parts one after the other (long_message.h). Shared by its starter and by what is under way.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/distributed/long_message.h"
#include "framework/distributed/rpc.h"

namespace treenail {

class StartedCall final : public std::enable_shared_from_this<StartedCall> {
 public:
  struct Server {
    std::string who;  // as RpcPeer
    bool encrypted = false;
    SharedChannel channel;
    std::string token;  // that is shown
  };
  // `timeout_ms` <= 0: none. `answer`: told once.
  StartedCall(Server server, const char* path, int64_t timeout_ms, bool wait_for_ready,
              RpcPeer::Answer& answer);
  ~StartedCall();
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;

  // One of the two, once.
  void send(OutgoingMessage message);
  void fetch(Message reply);  // of a call that was made otherwise; in parts

  void cancel();

 private:
  enum class Leg : uint8_t { kBegin, kPut, kCall, kGet };

  void go(Leg leg, const std::vector<RpcSlice>& slices);
  void keep(uint64_t number, RpcPending* pending);
  void answered(int32_t code, bool theirs, std::string_view text, std::span<const RpcView> reply);
  void go_on(std::span<const RpcView> reply);
  void call();
  void put();
  void get();
  void take(std::span<const RpcView> reply);
  void begin_fetch(Message reply);
  void fail(const std::exception_ptr& error);
  void drop_parts() const noexcept;
  bool is_cancelled();
  void check_cancelled();
  const char* path_of(Leg leg) const;
  int64_t left_ms() const;

  const RpcApi& api_;  // with which it began, and so ends, maybe when tests have set another
  const Server server_;
  const char* const path_;
  const int64_t deadline_ns_;  // 0: none
  const bool wait_for_ready_;
  RpcPeer::Answer& answer_;

  // Of who starts the next message, while none is under way.
  Leg leg_ = Leg::kCall;
  std::optional<OutgoingMessage> message_;
  std::shared_ptr<const OutgoingParts> out_;
  std::optional<Message> reply_;
  std::optional<IncomingParts> in_;
  std::string parts_token_;
  uint64_t offset_ = 0;  // of the part that is under way
  uint64_t bytes_ = 0;   // of it
  uint64_t last_number_ = 0;

  std::mutex mutex_;  // guards what follows
  RpcPending* pending_ = nullptr;
  uint64_t number_ = 0;  // of the message that is
  bool cancelled_ = false;
};

}  // namespace treenail
