// SPDX-License-Identifier: Apache-2.0
// What the pieces of a step did, on one timeline: each worker times its nodes by its own monotonic
// clock, and the master moves them to its own. How far a clock is off, one call tells to within
// half of its round trip; several narrow it down.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include "framework/base/cancellation.h"
#include "framework/device/device_name.h"
#include "framework/distributed/cluster.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/run/session.h"

namespace treenail {

// The device as a task's.
DeviceName device_of_task(const TaskName& task, const DeviceName& device);
// Devices that go by their own names go by those of the task from here on.
void name_by_task(RunMetadata& did, const TaskName& task);

// What is to be added to a time of this process's clock for one of another's.
struct ClockOffset {
  int64_t ns = 0;
  int64_t error_ns = 0;  // at most
};
class ClockBounds {
 public:
  // A call was made and answered at these times of this clock; meanwhile the other was at `theirs`.
  void narrow(int64_t asked_ns, int64_t theirs_ns, int64_t answered_ns);
  // Zero, as it is between processes of one machine, where no call contradicts that; else the
  // middle.
  ClockOffset offset() const;

 private:
  int64_t least_ = std::numeric_limits<int64_t>::min() / 4;
  int64_t most_ = std::numeric_limits<int64_t>::max() / 4;
};
// Asks some times. Errors: as RpcPeer::call().
ClockOffset clock_of(const RpcPeer& peer, int64_t timeout_ms, const CancellationToken* token);

class StepTrace {
 public:
  // Begins now. `clocks`: of the other tasks.
  explicit StepTrace(std::map<TaskName, ClockOffset> clocks);
  // What a piece did, which ran in that task.
  void move_to_own_clock(RunMetadata& did, const TaskName& task) const;
  // When all pieces are in it.
  void finish(RunMetadata& sum) const;

 private:
  const std::map<TaskName, ClockOffset> clocks_;
  const int64_t begun_ns_;
};

void add_piece(RunMetadata& sum, RunMetadata piece);

}  // namespace treenail
