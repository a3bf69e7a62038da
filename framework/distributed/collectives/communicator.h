// SPDX-License-Identifier: Apache-2.0
// A group of processes that compute together, as one of them sees it: its rank, how many there are,
// and collective operations among them. How bytes travel is each implementation's: shared memory on
// one host (shared_memory_communicator.h), or whatever sends slices of bytes between ranks
// (byte_exchange.h), such as MPI. A process belongs to one group at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/distributed/collectives/collective.h"

namespace treenail {

class Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "shared_memory", "mpi", "none" (one process).
  virtual const char* transport() const = 0;

  // Takes part in an execution; collective->ended() is called once, perhaps in here. Ranks may
  // submit in any order. Sleeps never; what waits, waits on the group's own thread. The tensors in
  // `inputs` are needed no longer once it returns. A caller who gives up need not say so: its part
  // is given, and the others get their results.
  // Errors: Unavailable once a rank is gone, FailedPrecondition in a child of fork(),
  // InvalidArgument.
  virtual void submit(IntrusivePtr<Collective> collective) = 0;

  // Memory for a value that is going to be submitted, where the transport needs no copy of it if it
  // has such memory. Whoever computes into it does so before submit(), and leaves it alone from
  // then on.
  virtual Tensor allocate(DType dtype, const Shape& shape) { return Tensor(dtype, shape); }

  // Waits, 10 s at most, for what was submitted, then leaves the group: what is submitted later,
  // and what others submit that needs this rank, fails. In a child of fork() it does nothing.
  virtual void close() noexcept = 0;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

// A group of this process alone.
std::shared_ptr<Communicator> single_communicator();

// The group of this process. Errors: FailedPrecondition where it has joined none.
std::shared_ptr<Communicator> current_communicator();
// Null where there is none.
std::shared_ptr<Communicator> find_communicator();
// Null: none any more. The one there was is closed.
void set_communicator(std::shared_ptr<Communicator> communicator);

}  // namespace treenail
