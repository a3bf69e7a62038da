// SPDX-License-Identifier: Apache-2.0
// One task on this host that asks for values of this one's steps, over a local socket. Small values
// go in packets; of others the elements are copied once, into memory that is lent, and the borrower
// reads them there. What it has borrowed goes with the connection. Who asks: borrower.h.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "framework/distributed/message.h"
#include "framework/distributed/neighbour_packets.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rendezvous.h"
#include "framework/distributed/shared_memory/lending_pool.h"
#include "framework/distributed/shared_memory/packet_link.h"
#include "framework/distributed/wake_event.h"

namespace treenail {

// Of a task, what the borrower asks for. Thread-safe.
class ValueSource {
 public:
  virtual ~ValueSource();
  // The next value that the step sends under the key.
  virtual void receive(const protocol::ReceiveRequest& request, Rendezvous::Receiver& receiver) = 0;
  // Whether the receiver was waiting: it is told nothing then.
  virtual bool forget(uint64_t step, const Rendezvous::Receiver& receiver) = 0;
  // A value is to be asked for under another key.
  virtual void send_again(const protocol::ReceiveRequest& request, Tensor value) = 0;
};

class Lender final : public std::enable_shared_from_this<Lender> {
 public:
  struct Options {
    std::string hello;           // what the borrower has to say
    int64_t most_bytes = 0;      // lent
    size_t inline_bytes = 8192;  // values of more are lent: measured, see docs/decisions/clusters
  };
  // `event` wakes the thread that calls hear() and flush().
  Lender(ValueSource& source, LocalConnection connection, std::shared_ptr<const WakeEvent> event,
         Options options);
  ~Lender();

  int fd() const { return link_.fd(); }
  bool waits() const { return link_.waits(); }
  void flush() { link_.flush(); }
  // Answers what has come, or sees to it that it is answered. False: the borrower is gone. Errors:
  // InvalidArgument for what is no request.
  bool hear();
  // Nobody is answered any more.
  void close();

 private:
  class Waiting;

  void handle(const NeighbourPacket& packet);
  void ask(uint64_t number, std::string_view body);
  void forget(uint64_t number);
  std::unique_ptr<Waiting> remove(uint64_t number);
  void answer(const Waiting& waiting, const Tensor* value,
              const std::exception_ptr& error) noexcept;
  void give(const Waiting& waiting, const Tensor& value);
  bool lend(const Waiting& waiting, PacketKind kind, LentValue lent, const Tensor* value,
            const OutgoingMessage* message);
  void send_elsewhere(const Waiting& waiting, const Tensor& value);
  void post(PacketKind kind, uint64_t number, std::string_view body,
            IntrusivePtr<Segment> passed = {});

  ValueSource& source_;
  PacketLink link_;
  const std::shared_ptr<const WakeEvent> event_;
  const Options options_;
  LendingPool pool_;
  bool greeted_ = false;
  std::mutex mutex_;  // guards what follows; held while a step is asked to forget a receiver
  std::unordered_map<uint64_t, std::unique_ptr<Waiting>> waiting_;
};

}  // namespace treenail
