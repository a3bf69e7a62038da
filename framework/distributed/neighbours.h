// SPDX-License-Identifier: Apache-2.0
// The tasks of the cluster that are on this host, which lend each other memory in which values lie
// instead of sending them. Each task has a local socket, whose name only it and who asks it know; a
// task from which values are received is asked which it is, and when that socket connects, the two
// are on one host. Where it does not (another host, namespaces of containers, another user, a
// directory that cannot be had), values go by message, and are not the slower for it; large ones
// over MPI, where what the task says of itself is what its rank has told over that.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/distributed/lender.h"
#include "framework/distributed/mpi_launch.h"
#include "framework/distributed/mpi_receiving.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// How values come from a task.
struct Transport {
  std::string task;
  bool shared_memory = false;
  std::string reason;       // why not, where that is known
  uint64_t values = 0;      // that have come by the local socket there is
  uint64_t lent_bytes = 0;  // of them in shared memory
  bool mpi = false;         // for large values that do not come so
  uint64_t mpi_values = 0, mpi_bytes = 0;
};

// What the thread of a Neighbours does soon.
class LaterWork {
 public:
  virtual ~LaterWork();
  // Does not wait.
  virtual void run() noexcept = 0;
};

class Neighbours {
 public:
  // `own`: whom others may ask. Where the host refuses sockets values go by message. Errors:
  // ResourceExhausted (no thread, no descriptor).
  Neighbours(ValueSource& own, uint64_t incarnation, MpiChoice mpi = {});
  // No step runs any more.
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // As AsyncKernel::start(): sets output 0. False: nothing was asked, the value is to be asked for
  // by message. `peer` outlives this.
  bool receive(std::string_view from, const RpcPeer& peer, const protocol::ReceiveRequest& request,
               const RunContext& c, const Done& done);

  // The way over MPI of what goes by message; null: there is none, or it is not known yet.
  std::shared_ptr<MpiWay> mpi_way(std::string_view from) const;

  std::vector<Transport> transports() const;
  // For what is done once for several that come shortly one after the other.
  void later(std::shared_ptr<LaterWork> work);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace treenail
