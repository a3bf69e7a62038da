// SPDX-License-Identifier: Apache-2.0
// What a group needs of a transport that is no shared memory: slices of bytes from rank to rank,
// without a copy of its own, and short notes from any rank. MPI is one (mpi_exchange.h), calls of
// gRPC another (distributed/rank_exchange.h). Calls come from one thread at a time, and none waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/tensor/buffer.h"

namespace treenail {

class ByteExchange {
 public:
  virtual ~ByteExchange();
  ByteExchange(const ByteExchange&) = delete;
  ByteExchange& operator=(const ByteExchange&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const char* name() const = 0;

  // A transfer, until done(). The bytes, which are of `memory`, stay where they are for so long; a
  // transfer that the caller gives up may hold on to that memory. Sender and receiver agree on
  // their number; transfers of one peer and tag arrive in order. Tags are in [1, 32767]. Errors:
  // Unavailable.
  using Ticket = uint64_t;
  virtual Ticket send(int peer, int tag, std::span<const std::byte> bytes,
                      const IntrusivePtr<Buffer>& memory) = 0;
  virtual Ticket receive(int peer, int tag, std::span<std::byte> bytes,
                         const IntrusivePtr<Buffer>& memory) = 0;
  // Whether it is over; then the ticket is none any more. Errors: Unavailable.
  virtual bool done(Ticket& ticket) = 0;

  // A note is copied, and received by whoever asks first. False: none has come.
  virtual void send_note(int peer, std::span<const std::byte> bytes) = 0;
  virtual bool take_note(int* peer, std::vector<std::byte>* bytes) = 0;

  // A peer that has ended, or that nothing reaches any more, and what is known of it; each once,
  // after the notes that it has sent. False: none. A transport that ends all ranks with one has no
  // need of it.
  virtual bool take_loss(int* /*peer*/, std::string* /*why*/) { return false; }

  class Listener {
   public:
    // From any thread: something may have come or be done.
    virtual void told() noexcept = 0;

   protected:
    ~Listener() = default;
  };
  // No earlier one is told any more once it returns; null: nobody is. False: it tells nobody; one
  // has to look.
  virtual bool notify(Listener* /*listener*/) { return false; }

  // Whether all ranks have to be waited for before close().
  virtual bool ends_together() const { return true; }
  // The last call; may wait for the other ranks to call it, too.
  virtual void close() noexcept = 0;

 protected:
  ByteExchange(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

}  // namespace treenail
