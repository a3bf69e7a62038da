// SPDX-License-Identifier: Apache-2.0
// A ByteExchange by calls of gRPC: inbox, outbox, and the listener through which others reach this
// rank. After fork() it does nothing in the child, and leaves what is the parent's alone.
#pragma once

#include <memory>

#include "framework/base/fork.h"
#include "framework/distributed/collectives/byte_exchange.h"
#include "framework/distributed/rank_outbox.h"
#include "framework/distributed/rank_service.h"

namespace treenail {

class RankExchange final : public ByteExchange {
 public:
  struct Parts {
    std::shared_ptr<RankInbox> inbox;
    std::shared_ptr<RankOutbox> outbox;
    std::unique_ptr<RankService> service;
    std::unique_ptr<RpcListener> listener;  // of the service
  };
  RankExchange(int rank, int size, Parts parts);
  ~RankExchange() override;
  const char* name() const override { return "grpc"; }

  Ticket send(int peer, int tag, std::span<const std::byte> bytes,
              const IntrusivePtr<Buffer>& memory) override;
  Ticket receive(int peer, int tag, std::span<std::byte> bytes,
                 const IntrusivePtr<Buffer>& memory) override;
  bool done(Ticket& ticket) override;
  void send_note(int peer, std::span<const std::byte> bytes) override;
  bool take_note(int* peer, std::vector<std::byte>* bytes) override;
  bool take_loss(int* peer, std::string* why) override;
  bool notify(Listener* listener) override;
  bool ends_together() const override { return false; }
  void close() noexcept override;

 private:
  bool of_parent() const { return generation_ != fork_generation(); }

  Parts parts_;
  Ticket last_ = 0;
  const uint32_t generation_ = fork_generation();
};

}  // namespace treenail
