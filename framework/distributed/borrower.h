// SPDX-License-Identifier: Apache-2.0
// One task on this host whose steps' values this one asks for over a local socket. What it lends is
// read where it lies, by tensors whose end gives it back. Who answers: lender.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "framework/distributed/neighbour_packets.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/shared_memory/packet_link.h"
#include "framework/distributed/wake_event.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

class Borrower {
 public:
  // `peer`: the same task by message, for values that it cannot lend. `event` wakes the thread that
  // calls hear() and flush().
  Borrower(const RpcPeer& peer, LocalConnection connection, std::shared_ptr<const WakeEvent> event,
           std::string_view hello);
  ~Borrower();
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

  // As AsyncKernel::start(): sets output 0. False: nothing was asked, since the task has not said
  // yet that it is the right one, is gone, or lately had no memory to lend.
  bool ask(const protocol::ReceiveRequest& request, const RunContext& c, const Done& done);

  int fd() const { return link_.fd(); }
  bool waits() const { return link_.waits(); }
  void flush() { link_.flush(); }
  // False: the task is gone. Errors: InvalidArgument for what is no answer.
  bool hear();
  // Whoever waits is told so; nothing can be asked any more.
  void close(const std::exception_ptr& error);

  bool ready() const { return ready_; }
  uint64_t values() const { return values_; }  // that have come
  uint64_t lent_bytes() const { return lent_bytes_; }

 private:
  struct Awaited;

  void handle(std::string_view packet, int passed);
  std::unique_ptr<Awaited> take(uint64_t number);
  static void cancel(void* awaited);
  Tensor lent_tensor(const LentValue& lent);
  Tensor lent_message(const LentValue& lent);
  SharedBlock block_of(const LentValue& lent) const;
  void post(PacketKind kind, uint64_t number, std::string_view body);
  template <class Make>
  void finish(uint64_t number, Make make);
  void ask_by_message(uint64_t number, std::string_view key);

  const RpcPeer& peer_;
  PacketLink link_;
  const std::shared_ptr<const WakeEvent> event_;
  std::map<uint64_t, IntrusivePtr<Segment>> segments_;  // of the thread that calls hear()
  std::atomic<bool> ready_{false};
  std::atomic<int64_t> paused_until_{0};
  std::atomic<uint64_t> values_{0};
  std::atomic<uint64_t> lent_bytes_{0};
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, std::unique_ptr<Awaited>> awaited_;
  uint64_t last_number_ = 0;
  bool closed_ = false;
};

}  // namespace treenail
