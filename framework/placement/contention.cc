// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/contention.h"

#include <algorithm>
#include <map>

namespace treenail {

Contention::Contention(const PlacementProblem& problem) : hosts_(problem.devices.size(), -1) {
  std::map<int32_t, std::vector<int32_t>> devices;
  std::map<int32_t, bool> slow;
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    const PlacementProblem::Device& device = problem.devices[d];
    slowdowns_.push_back(device.slowdown);
    if (device.host < 0) continue;
    devices[device.host].push_back(static_cast<int32_t>(d));
    slow[device.host] = slow[device.host] || device.slowdown > 1;
  }
  for (auto& [host, members] : devices) {
    if (members.size() < 2 || !slow[host]) continue;
    for (const int32_t device : members)
      hosts_[static_cast<size_t>(device)] = static_cast<int32_t>(devices_.size());
    devices_.push_back(std::move(members));
  }
}

double Contention::stretch(int32_t device, size_t busy_others) const {
  const auto others = static_cast<double>(devices(host(device)).size() - 1);
  const double more = slowdowns_[static_cast<size_t>(device)] - 1;
  return 1 + more * static_cast<double>(busy_others) / others;
}

SlowedTasks::SlowedTasks(const PlacementProblem& problem)
    : contention_(problem), clocks_(problem.devices.size()) {}

void SlowedTasks::start(int32_t device, int32_t task, double seconds, double now) {
  Clock& c = clock(device);
  if (c.ends.empty()) {
    c.since = now;
    c.work = 0;
  }
  c.ends.emplace(c.work + (now - c.since) / c.stretch + seconds, task);
  changed_.push_back(contention_.host(device));
}

// What was overtaken by a later word of the same device's clock goes.
double SlowedTasks::next_end() {
  while (!next_.empty() && clock(next_.top().second).next != next_.top().first) next_.pop();
  return next_.empty() ? kNever : next_.top().first;
}

void SlowedTasks::take_ends(double now, std::vector<int32_t>& tasks) {
  while (next_end() == now) {
    const int32_t device = next_.top().second;
    Clock& c = clock(device);
    tasks.push_back(c.ends.top().second);
    c.ends.pop();
    changed_.push_back(contention_.host(device));
    set_next(device, now);
  }
}

void SlowedTasks::settle(double now) {
  std::ranges::sort(changed_);
  int32_t last = -1;
  for (const int32_t host : changed_) {
    if (host != last) settle_host(contention_.devices(host), now);
    last = host;
  }
  changed_.clear();
}

void SlowedTasks::settle_host(std::span<const int32_t> devices, double now) {
  const auto busy = static_cast<size_t>(
      std::ranges::count_if(devices, [&](int32_t device) { return !clock(device).ends.empty(); }));
  for (const int32_t device : devices) {
    Clock& c = clock(device);
    if (c.ends.empty()) continue;
    const double stretch = contention_.stretch(device, busy - 1);
    if (stretch != c.stretch) {
      c.work += (now - c.since) / c.stretch;
      c.since = now;
      c.stretch = stretch;
    }
    set_next(device, now);
  }
}

// Rounding must not put an end before `now`.
void SlowedTasks::set_next(int32_t device, double now) {
  Clock& c = clock(device);
  const double next =
      c.ends.empty() ? kNever : std::max(now, c.since + (c.ends.top().first - c.work) * c.stretch);
  if (next == c.next) return;
  c.next = next;
  if (next != kNever) next_.emplace(next, device);
}

}  // namespace treenail
