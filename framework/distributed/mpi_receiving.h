// SPDX-License-Identifier: Apache-2.0
// A value that another task has begun to send over MPI (mpi_values.h), on its way to this one's
// step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/distributed/message.h"
#include "framework/distributed/mpi_values.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// From one task.
struct MpiWay {
  MpiWay(std::shared_ptr<MpiValues> values, MpiTask task)
      : values(std::move(values)), task(std::move(task)) {}
  const std::shared_ptr<MpiValues> values;
  const MpiTask task;  // which `values` knows
  std::atomic<uint64_t> received{0}, bytes{0};
};

// As AsyncKernel::start(): sets output 0. `peer`: the same task by message, which is asked whether
// it is there and sends where the value takes long. Errors: as of a tensor that is made,
// Unavailable, InvalidArgument; then what comes is dropped.
void receive_over_mpi(const RpcPeer& peer, const std::shared_ptr<MpiWay>& way, uint64_t tag,
                      const TensorDescription& tensor, const RunContext& c, const Done& done);

}  // namespace treenail
