// SPDX-License-Identifier: Apache-2.0
// Devices that share a host (its memory, caches, power, the threads of a core) slow each other: a
// second of work on a device takes as many seconds as the device's slowdown says while all others
// of the host are busy, and with some of them busy so many parts of what that is more than one.
// Which kind of work others do makes no difference.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "framework/placement/problem.h"

namespace treenail {

class Contention {
 public:
  explicit Contention(const PlacementProblem& problem);

  // Of the device, among those hosts of which a device is slowed; -1: it is on none.
  int32_t host(int32_t device) const { return hosts_[static_cast<size_t>(device)]; }
  std::span<const int32_t> devices(int32_t host) const {
    return devices_[static_cast<size_t>(host)];
  }
  // Seconds for a second of its work, while so many others of its host are busy.
  double stretch(int32_t device, size_t busy_others) const;

 private:
  std::vector<int32_t> hosts_;                 // by device
  std::vector<std::vector<int32_t>> devices_;  // by host
  std::vector<double> slowdowns_;              // by device
};

// The tasks that run on devices which may slow each other. Each device has a clock of work that
// goes as fast as its tasks do, so that only the clock changes when others begin or end.
class SlowedTasks {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit SlowedTasks(const PlacementProblem& problem);

  bool runs_on(int32_t device) const { return contention_.host(device) >= 0; }
  // `seconds`: of work, more than none. settle() must follow before time goes on.
  void start(int32_t device, int32_t task, double seconds, double now);
  // When the next task ends if none starts before.
  double next_end();
  // Appends those that end at `now`, which is no later than next_end(). settle() must follow.
  void take_ends(double now, std::vector<int32_t>& tasks);
  // From `now` on the devices go as fast as what else is busy lets them.
  void settle(double now);

 private:
  using Event = std::pair<double, int32_t>;
  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

  struct Clock {
    Events ends;           // of tasks, in seconds of work
    double since = 0;      // the time from which on the stretch holds
    double work = 0;       // that was done by then
    double stretch = 1;    // seconds for a second of work
    double next = kNever;  // when the first of `ends` comes, as things are
  };

  Clock& clock(int32_t device) { return clocks_[static_cast<size_t>(device)]; }
  void settle_host(std::span<const int32_t> devices, double now);
  void set_next(int32_t device, double now);

  const Contention contention_;
  std::vector<Clock> clocks_;     // by device
  Events next_;                   // of devices; one holds while its clock says the same
  std::vector<int32_t> changed_;  // hosts on which something has begun or ended
};

}  // namespace treenail
