// SPDX-License-Identifier: Apache-2.0
// A schedule that grows by one task at a time. It predicts as simulation.h does, but for two
// things: a task is put behind all that its device was given before; and where devices of one host
// slow each other, those that are busy when it starts slow it until its end, and it slows none of
// them.
#include "framework/placement/greedy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "framework/base/interrupt.h"
#include "framework/placement/contention.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;
constexpr int32_t kOpen = -1;

// Seconds from the start of each task to the end of the last behind it, by mean costs.
std::vector<double> remaining_seconds(const Problem& p) {
  double latency = 0, per_byte = 0;
  for (const Problem::Link& link : p.links) {
    latency += link.latency / static_cast<double>(p.links.size());
    per_byte += link.seconds_per_byte / static_cast<double>(p.links.size());
  }
  // Of two ends of an edge that fall on any device alike, so many are apart.
  const double memories = p.num_memories();
  const double apart = (memories - 1) / memories;
  std::vector<double> remaining(p.tasks.size(), 0);
  for (size_t t = p.tasks.size(); t-- > 0;) {
    for (const int32_t output : p.tasks[t].outputs) {
      const Problem::Value& value = p.values[static_cast<size_t>(output)];
      const double crossing = apart * (latency + static_cast<double>(value.bytes) * per_byte);
      for (const int32_t consumer : value.consumers)
        remaining[t] = std::max(remaining[t], crossing + remaining[static_cast<size_t>(consumer)]);
    }
    double mean = 0;
    for (int32_t c = 0; c < p.cost_classes; ++c) {
      mean += p.seconds[t * static_cast<size_t>(p.cost_classes) + static_cast<size_t>(c)] /
              p.cost_classes;
    }
    remaining[t] += mean;
  }
  return remaining;
}

class Greedy {
 public:
  explicit Greedy(const Problem& problem)
      : p_(problem),
        contention_(problem),
        places_(problem.units.size(), kOpen),
        waiting_(problem.units.size()),
        finish_(problem.tasks.size(), 0),
        free_at_(problem.devices.size()),
        busy_until_(problem.devices.size(), 0),
        unit_seconds_(problem.units.size() * static_cast<size_t>(problem.cost_classes), 0),
        room_(problem.capacities),
        reserved_(problem.devices.size(), 0) {
    for (size_t d = 0; d < free_at_.size(); ++d)
      free_at_[d].assign(static_cast<size_t>(problem.devices[d].slots), 0);
    for (int64_t& room : room_) room = room == 0 ? std::numeric_limits<int64_t>::max() : room;
    for (size_t t = 0; t < problem.tasks.size(); ++t) {
      for (int32_t c = 0; c < problem.cost_classes; ++c)
        unit_seconds(problem.tasks[t].unit, c) +=
            problem.seconds[t * static_cast<size_t>(problem.cost_classes) + static_cast<size_t>(c)];
      const std::vector<int32_t>& allowed = unit_of(static_cast<int32_t>(t)).devices;
      if (allowed.size() == 1)
        reserved_[static_cast<size_t>(allowed[0])] += p_.cost(static_cast<int32_t>(t), allowed[0]);
    }
  }

  std::vector<int32_t> run(std::span<const int32_t> order) {
    for (const int32_t task : order) {
      poll_interrupt();
      add(task);
    }
    for (const int32_t task : order) {
      if (place_of(task) == kOpen) settle(task, best_device(task));
    }
    std::vector<int32_t> by_task(p_.tasks.size());
    for (size_t t = 0; t < by_task.size(); ++t) by_task[t] = place_of(static_cast<int32_t>(t));
    return by_task;
  }

 private:
  struct Arrival {
    double at = 0;
    double sent = 0;
    std::array<int64_t, 2> channels = {-1, -1};  // -1: nothing crosses
  };

  const Problem::Task& task_of(int32_t task) const { return p_.tasks[static_cast<size_t>(task)]; }
  const Problem::Unit& unit_of(int32_t task) const {
    return p_.units[static_cast<size_t>(task_of(task).unit)];
  }
  int32_t& place_of(int32_t task) { return places_[static_cast<size_t>(task_of(task).unit)]; }
  double& unit_seconds(int32_t unit, int32_t cost_class) {
    return unit_seconds_[static_cast<size_t>(unit) * static_cast<size_t>(p_.cost_classes) +
                         static_cast<size_t>(cost_class)];
  }

  void add(int32_t task) {
    if (place_of(task) != kOpen) return schedule(task);
    if (hangs_on_nothing(task)) {
      waiting_[static_cast<size_t>(task_of(task).unit)].push_back(task);
      return;
    }
    const int32_t device = best_device(task);
    for (const int32_t input : task_of(task).inputs) {
      const int32_t producer = p_.values[static_cast<size_t>(input)].producer;
      if (place_of(producer) == kOpen && task_of(producer).unit != task_of(task).unit)
        settle(producer, may_run(producer, device) && spare(producer, device) >= 0
                             ? device
                             : best_device(producer));
    }
    settle(task, device);
  }

  // All that it needs comes of its own unit, or floats, too.
  bool hangs_on_nothing(int32_t task) {
    if (!task_of(task).floats) return false;
    return std::ranges::all_of(task_of(task).inputs, [&](int32_t input) {
      return place_of(p_.values[static_cast<size_t>(input)].producer) == kOpen;
    });
  }

  // The unit of the task, with those of its tasks that wait for a place.
  void settle(int32_t task, int32_t device) {
    const auto unit = static_cast<size_t>(task_of(task).unit);
    places_[unit] = device;
    room_of(device) -= p_.units[unit].state_bytes;
    const std::vector<int32_t> waiting = std::move(waiting_[unit]);
    waiting_[unit].clear();
    bool met = false;
    for (const int32_t each : waiting) {
      schedule(each);
      met = met || each == task;
    }
    if (!met) schedule(task);
  }

  int64_t& room_of(int32_t device) { return room_[static_cast<size_t>(p_.memory_of(device))]; }
  bool may_run(int32_t task, int32_t device) const {
    const std::vector<int32_t>& allowed = unit_of(task).devices;
    return allowed.empty() || std::ranges::binary_search(allowed, device);
  }
  bool may_lie_in(int32_t task, int32_t memory) const {
    const std::vector<int32_t>& allowed = unit_of(task).devices;
    return allowed.empty() || std::ranges::any_of(allowed, [&](int32_t device) {
             return p_.memory_of(device) == memory;
           });
  }
  // Bytes left in the device's memory beside state, the task's values and what must cross for it;
  // negative: so many are wanting.
  int64_t spare(int32_t task, int32_t device) {
    const int32_t memory = p_.memory_of(device);
    int64_t spare = room_[static_cast<size_t>(memory)] - unit_of(task).state_bytes;
    for (const int32_t output : task_of(task).outputs)
      spare -= p_.values[static_cast<size_t>(output)].held;
    for (const int32_t input : task_of(task).inputs) {
      const Problem::Value& value = p_.values[static_cast<size_t>(input)];
      const int32_t place = place_of(value.producer);
      if (place != kOpen && p_.memory_of(place) != memory) spare -= value.bytes;
    }
    return spare;
  }

  int32_t best_device(int32_t task) {
    int32_t best = kOpen;
    std::pair<double, double> best_score;
    int64_t best_spare = 0;
    const auto look_at = [&](int32_t device) {
      const int64_t spare = std::min<int64_t>(this->spare(task, device), 0);
      if (best != kOpen && spare < best_spare) return;
      const std::pair score(predicted_finish(task, device), reserved_[static_cast<size_t>(device)]);
      if (best != kOpen && spare == best_spare && score >= best_score) return;
      best = device;
      best_score = score;
      best_spare = spare;
    };
    const std::vector<int32_t>& allowed = unit_of(task).devices;
    if (allowed.empty()) {
      for (int32_t d = 0; d < static_cast<int32_t>(p_.devices.size()); ++d) look_at(d);
    } else {
      std::ranges::for_each(allowed, look_at);
    }
    return best;
  }

  // What else is in the unit runs there, too, sooner or later.
  double predicted_finish(int32_t task, int32_t device) {
    const Problem::Device& d = p_.devices[static_cast<size_t>(device)];
    double start = ready_at(task, device, false);
    if (p_.cost(task, device) > 0) start = std::max(start, *first_free(device));
    const double rest = unit_seconds(task_of(task).unit, d.cost_class) - p_.cost(task, device);
    const double stretch = this->stretch(device, start);
    return start + stretch * p_.cost(task, device) + stretch * std::max(0.0, rest) / d.slots;
  }

  // Seconds that a second of the device's work takes from `start` on.
  double stretch(int32_t device, double start) const {
    const int32_t host = contention_.host(device);
    if (host < 0) return 1;
    const auto busy = std::ranges::count_if(contention_.devices(host), [&](int32_t other) {
      return other != device && busy_until_[static_cast<size_t>(other)] > start;
    });
    return contention_.stretch(device, static_cast<size_t>(busy));
  }

  std::vector<double>::iterator first_free(int32_t device) {
    return std::ranges::min_element(free_at_[static_cast<size_t>(device)]);
  }

  // `cross`: what crosses does so from now on, else this is a question.
  double ready_at(int32_t task, int32_t device, bool cross) {
    const int32_t memory = p_.memory_of(device);
    double ready = 0;
    asked_.clear();
    for (const int32_t input : task_of(task).inputs) {
      const Arrival arrival = arrival_of(input, memory);
      ready = std::max(ready, arrival.at);
      if (arrival.channels[0] < 0) continue;
      for (const int64_t channel : arrival.channels) {
        if (cross) {
          channels_[channel] = arrival.sent;
        } else {
          asked_.emplace_back(channel, arrival.sent);
        }
      }
      if (cross) arrived_[key(input, memory)] = arrival.at;
    }
    return ready;
  }

  Arrival arrival_of(int32_t number, int32_t memory) {
    const Problem::Value& value = p_.values[static_cast<size_t>(number)];
    int32_t place = place_of(value.producer);
    if (place == kOpen) {
      if (may_lie_in(value.producer, memory)) return {};  // goes where it is wanted
      place = unit_of(value.producer).devices[0];
    }
    const int32_t from = p_.memory_of(place);
    const double made = finish_[static_cast<size_t>(value.producer)];
    if (from == memory) return {made};
    if (const auto known = arrived_.find(key(number, memory)); known != arrived_.end())
      return {known->second};
    const Problem::Link& link = p_.link(from, memory);
    const std::array<int64_t, 2> channels = p_.channels(from, memory);
    double start = made;
    for (const int64_t channel : channels) start = std::max(start, free_again(channel));
    const double sent = start + static_cast<double>(value.bytes) * link.seconds_per_byte;
    return {sent + link.latency, sent, channels};
  }

  double free_again(int64_t channel) const {
    const auto found = channels_.find(channel);
    double free = found == channels_.end() ? 0 : found->second;
    for (const auto& [asked, until] : asked_) free = asked == channel ? until : free;
    return free;
  }

  void schedule(int32_t task) {
    const int32_t device = place_of(task);
    const double seconds = p_.cost(task, device);
    double start = ready_at(task, device, true);
    if (seconds > 0) start = std::max(start, *first_free(device));
    const double finish = start + stretch(device, start) * seconds;
    finish_[static_cast<size_t>(task)] = finish;
    if (seconds > 0) {
      *first_free(device) = finish;
      double& busy = busy_until_[static_cast<size_t>(device)];
      busy = std::max(busy, finish);
    }
    unit_seconds(task_of(task).unit, p_.devices[static_cast<size_t>(device)].cost_class) -= seconds;
    if (unit_of(task).devices.size() == 1) reserved_[static_cast<size_t>(device)] -= seconds;
  }

  static int64_t key(int32_t value, int32_t memory) {
    return (static_cast<int64_t>(value) << 32) | static_cast<uint32_t>(memory);
  }

  const Problem& p_;
  const Contention contention_;
  std::vector<int32_t> places_;                // by unit
  std::vector<std::vector<int32_t>> waiting_;  // by unit: its tasks that have come so far
  std::vector<double> finish_;                 // by task
  std::vector<std::vector<double>> free_at_;   // by device: when each slot is free
  std::vector<double> busy_until_;             // by device: when all of its slots are
  std::vector<double> unit_seconds_;  // by unit and cost class, of tasks that are not placed
  std::vector<int64_t> room_;         // by memory, beside state
  std::vector<double>
      reserved_;  // by device: seconds of what can run nowhere else and has not come
  std::unordered_map<int64_t, double> channels_, arrived_;
  std::vector<std::pair<int64_t, double>> asked_;
};

}  // namespace

std::vector<int32_t> place_greedily(const PlacementProblem& problem, GreedyOrder order) {
  std::vector<int32_t> tasks(problem.tasks.size());
  std::iota(tasks.begin(), tasks.end(), 0);
  if (order == GreedyOrder::kCriticalPath) {
    const std::vector<double> remaining = remaining_seconds(problem);
    std::ranges::stable_sort(tasks, [&](int32_t a, int32_t b) {
      return remaining[static_cast<size_t>(a)] > remaining[static_cast<size_t>(b)];
    });
  }
  return Greedy(problem).run(tasks);
}

}  // namespace treenail
