// SPDX-License-Identifier: Apache-2.0
// What a group needs of a transport that is no shared memory: slices of bytes from rank to rank,
// without a copy of its own, and short notes from any rank. MPI is one (mpi_exchange.h). Calls come
// from one thread at a time, and none waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace treenail {

class ByteExchange {
 public:
  virtual ~ByteExchange();
  ByteExchange(const ByteExchange&) = delete;
  ByteExchange& operator=(const ByteExchange&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const char* name() const = 0;

  // A transfer, until done(). The bytes stay where they are for so long. Sender and receiver agree
  // on their number; transfers of one peer and tag arrive in order. Tags are in [1, 32767].
  // Errors: Unavailable.
  using Ticket = uint64_t;
  virtual Ticket send(int peer, int tag, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(int peer, int tag, std::span<std::byte> bytes) = 0;
  // Whether it is over; then the ticket is none any more. Errors: Unavailable.
  virtual bool done(Ticket& ticket) = 0;

  // A note is copied, and received by whoever asks first. False: none has come.
  virtual void send_note(int peer, std::span<const std::byte> bytes) = 0;
  virtual bool take_note(int* peer, std::vector<std::byte>* bytes) = 0;

  // The last call; may wait for the other ranks to call it, too.
  virtual void close() noexcept = 0;

 protected:
  ByteExchange(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

}  // namespace treenail
