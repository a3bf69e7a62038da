// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/step_trace.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/spin.h"
#include "framework/distributed/protocol.h"

namespace treenail {
namespace {

// The first may have to connect.
constexpr int kAskedTimes = 5;
constexpr int64_t kMostTime = std::numeric_limits<int64_t>::max() / 8;

}  // namespace

DeviceName device_of_task(const TaskName& task, const DeviceName& device) {
  DeviceName name = device;
  name.job = task.job;
  name.replica = 0;
  name.task = task.index;
  return name;
}

void name_by_task(RunMetadata& did, const TaskName& task) {
  std::map<std::string, std::string> known;
  const auto rename = [&](std::string& device) {
    std::string& name = known[device];
    if (name.empty()) name = to_text(device_of_task(task, parse_device_name(device)));
    device = name;
  };
  for (DeviceMemory& memory : did.devices) rename(memory.device);
  for (NodeStats& node : did.nodes) rename(node.device);
}

void ClockBounds::narrow(int64_t asked_ns, int64_t theirs_ns, int64_t answered_ns) {
  // Another process may say any number.
  theirs_ns = std::clamp(theirs_ns, -kMostTime, kMostTime);
  least_ = std::max(least_, theirs_ns - answered_ns);
  most_ = std::max(least_, std::min(most_, theirs_ns - asked_ns));
}

ClockOffset ClockBounds::offset() const {
  if (least_ <= 0 && most_ >= 0) return {0, std::max(-least_, most_)};
  const int64_t half = (most_ - least_ + 1) / 2;
  return {least_ + half, half};
}

ClockOffset clock_of(const RpcPeer& peer, int64_t timeout_ms, const CancellationToken* token) {
  ClockBounds bounds;
  for (int i = 0; i < kAskedTimes; ++i) {
    const int64_t asked = monotonic_ns();
    const Message reply = peer.call(protocol::worker::kGetStatus, {}, {},
                                    {.timeout_ms = timeout_ms, .token = token, .repeatable = true});
    const int64_t answered = monotonic_ns();
    const auto status = protocol::read<protocol::TaskStatus>(reply.fields());
    bounds.narrow(asked, status.now_ns, answered);
  }
  return bounds.offset();
}

StepTrace::StepTrace(std::map<TaskName, ClockOffset> clocks)
    : clocks_(std::move(clocks)), begun_ns_(monotonic_ns()) {}

void StepTrace::move_to_own_clock(RunMetadata& did, const TaskName& task) const {
  const auto clock = clocks_.find(task);
  const int64_t offset = clock == clocks_.end() ? 0 : clock->second.ns;
  // Unsigned: what another process says may be any number.
  const auto later = static_cast<uint64_t>(did.begun_ns) - static_cast<uint64_t>(offset) -
                     static_cast<uint64_t>(begun_ns_);
  const auto moved = [later](int64_t ns) {
    return static_cast<int64_t>(static_cast<uint64_t>(ns) + later);
  };
  for (NodeStats& node : did.nodes) {
    node.start_ns = moved(node.start_ns);
    node.end_ns = moved(node.end_ns);
  }
}

void StepTrace::finish(RunMetadata& sum) const {
  std::ranges::stable_sort(sum.nodes, {}, &NodeStats::start_ns);
  // Nothing has begun before the run has, whatever the clocks say.
  const int64_t early = sum.nodes.empty() ? 0 : std::min<int64_t>(0, sum.nodes.front().start_ns);
  if (early < -kMostTime) throw data_loss("a task told times of its nodes that cannot be");
  for (NodeStats& node : sum.nodes) {
    node.start_ns -= early;
    node.end_ns = std::max(node.end_ns - early, node.start_ns);
  }
  sum.begun_ns = begun_ns_;
  // Of two tasks against each other: the two largest.
  int64_t largest = 0, second = 0;
  for (const auto& [task, clock] : clocks_) {
    if (clock.error_ns > largest) {
      second = std::exchange(largest, clock.error_ns);
    } else {
      second = std::max(second, clock.error_ns);
    }
  }
  sum.clock_error_ns = largest + second;
}

void add_piece(RunMetadata& sum, RunMetadata piece) {
  sum.nodes_executed += piece.nodes_executed;
  sum.arena_bytes += piece.arena_bytes;
  sum.peak_bytes += piece.peak_bytes;
  sum.cost_ns += piece.cost_ns;
  sum.specialized &= piece.specialized;
  std::ranges::move(piece.devices, std::back_inserter(sum.devices));
  std::ranges::move(piece.nodes, std::back_inserter(sum.nodes));
}

}  // namespace treenail
