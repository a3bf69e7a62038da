// SPDX-License-Identifier: Apache-2.0
// Events in the order of time: tasks that end, values that arrive. All of one time are taken
// together, so that the order within does not depend on the heap's.
#include "framework/placement/simulation.h"

#include <algorithm>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>

#include "framework/placement/contention.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;

class Simulation {
 public:
  Simulation(const Problem& problem, std::span<const int32_t> places)
      : p_(problem),
        places_(places),
        slowed_(problem),
        missing_(problem.tasks.size()),
        free_slots_(problem.devices.size()),
        ready_(problem.devices.size()),
        live_(problem.capacities.size(), 0) {
    const size_t tasks = problem.tasks.size();
    timeline_.start.resize(tasks);
    timeline_.finish.resize(tasks);
    timeline_.busy.resize(problem.devices.size());
    timeline_.peak_bytes.resize(live_.size());
    for (size_t d = 0; d < free_slots_.size(); ++d) free_slots_[d] = problem.devices[d].slots;
    std::vector<bool> placed(problem.units.size());
    for (size_t t = 0; t < tasks; ++t) {
      const auto unit = static_cast<size_t>(problem.tasks[t].unit);
      if (!placed[unit]) hold(memory(static_cast<int32_t>(t)), problem.units[unit].state_bytes);
      placed[unit] = true;
    }
  }

  PlacementTimeline run() {
    for (size_t t = 0; t < missing_.size(); ++t) {
      missing_[t] = static_cast<int32_t>(p_.tasks[t].inputs.size());
      if (missing_[t] == 0) make_ready(static_cast<int32_t>(t));
    }
    start_ready();
    for (;;) {
      now_ = std::min({slowed_.next_end(), time_of(ends_), time_of(arrivals_)});
      if (now_ == SlowedTasks::kNever) return std::move(timeline_);
      take_ends();
      take_arrivals();
      start_ready();
    }
  }

 private:
  using Event = std::pair<double, int32_t>;
  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;
  using Ready = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;

  static double time_of(const Events& events) {
    return events.empty() ? SlowedTasks::kNever : events.top().first;
  }

  int32_t device(int32_t task) const { return places_[static_cast<size_t>(task)]; }
  int32_t memory(int32_t task) const { return p_.memory_of(device(task)); }
  const Problem::Task& task_of(int32_t task) const { return p_.tasks[static_cast<size_t>(task)]; }
  const Problem::Value& value_of(int32_t value) const {
    return p_.values[static_cast<size_t>(value)];
  }

  void hold(int32_t memory, int64_t bytes) {
    int64_t& live = live_[static_cast<size_t>(memory)];
    live += bytes;
    int64_t& peak = timeline_.peak_bytes[static_cast<size_t>(memory)];
    peak = std::max(peak, live);
  }

  bool takes_slot(int32_t task) const { return p_.cost(task, device(task)) > 0; }

  void make_ready(int32_t task) {
    if (!takes_slot(task)) return immediate_.push_back(task);
    const auto d = static_cast<size_t>(device(task));
    ready_[d].push(task);
    if (free_slots_[d] > 0) touched_.push_back(device(task));
  }

  void start_ready() {
    std::ranges::sort(immediate_);
    for (const int32_t task : immediate_) start(task);
    immediate_.clear();
    std::ranges::sort(touched_);
    for (const int32_t d : touched_) {
      auto& ready = ready_[static_cast<size_t>(d)];
      int32_t& slots = free_slots_[static_cast<size_t>(d)];
      while (slots > 0 && !ready.empty()) {
        const int32_t task = ready.top();
        ready.pop();
        --slots;
        start(task);
      }
    }
    touched_.clear();
    slowed_.settle(now_);
  }

  void start(int32_t task) {
    const double seconds = p_.cost(task, device(task));
    timeline_.start[static_cast<size_t>(task)] = now_;
    if (seconds > 0 && slowed_.runs_on(device(task))) {
      slowed_.start(device(task), task, seconds, now_);
    } else {
      note_finish(task, now_ + seconds, seconds);
      ends_.emplace(now_ + seconds, task);
    }
    for (const int32_t output : task_of(task).outputs) {
      const Problem::Value& value = value_of(output);
      hold(memory(task), value.held);
      if (value.view_of >= 0) ++uses(value.view_of, memory(task));
      uses(output, memory(task)) = static_cast<int32_t>(value.consumers.size()) + 1;
    }
  }

  void note_finish(int32_t task, double finish, double seconds) {
    timeline_.finish[static_cast<size_t>(task)] = finish;
    timeline_.busy[static_cast<size_t>(device(task))] += seconds;
    timeline_.makespan = std::max(timeline_.makespan, finish);
  }

  void take_ends() {
    ending_.clear();
    for (; time_of(ends_) == now_; ends_.pop()) ending_.push_back(ends_.top().second);
    const size_t unslowed = ending_.size();
    slowed_.take_ends(now_, ending_);
    for (const int32_t task : std::span(ending_).subspan(unslowed))
      note_finish(task, now_, now_ - timeline_.start[static_cast<size_t>(task)]);
    std::ranges::sort(ending_);
    for (const int32_t task : ending_) end(task);
  }

  void end(int32_t task) {
    if (takes_slot(task)) {
      ++free_slots_[static_cast<size_t>(device(task))];
      touched_.push_back(device(task));
    }
    for (const int32_t input : task_of(task).inputs) release(input, memory(task));
    for (const int32_t output : task_of(task).outputs) hand_on(output);
  }

  // To who takes it in its own memory, and by transfers to the others.
  void hand_on(int32_t number) {
    const Problem::Value& value = value_of(number);
    const int32_t here = memory(value.producer);
    elsewhere_.clear();
    for (const int32_t consumer : value.consumers) {
      const int32_t there = memory(consumer);
      if (there == here) {
        receive(consumer);
      } else {
        elsewhere_.emplace_back(there, consumer);
      }
    }
    std::ranges::sort(elsewhere_);
    for (size_t i = 0; i < elsewhere_.size();) {
      size_t end = i;
      while (end < elsewhere_.size() && elsewhere_[end].first == elsewhere_[i].first) ++end;
      send(number, here, elsewhere_[i].first);
      // Of so many uses here one transfer is left.
      uses(number, here) -= static_cast<int32_t>(end - i) - 1;
      uses(number, elsewhere_[i].first) = static_cast<int32_t>(end - i);
      i = end;
    }
    release(number, here);
  }

  void send(int32_t value, int32_t from, int32_t to) {
    const Problem::Link& link = p_.link(from, to);
    const auto [first, second] = p_.channels(from, to);
    const double start = std::max({now_, channels_[first], channels_[second]});
    const double sent = start + static_cast<double>(value_of(value).bytes) * link.seconds_per_byte;
    channels_[first] = channels_[second] = sent;
    const double there = sent + link.latency;
    arrivals_.emplace(there, static_cast<int32_t>(timeline_.transfers.size()));
    timeline_.transfers.push_back({value, from, to, start, there});
  }

  // What was sent is let go everywhere before what is there takes room.
  void take_arrivals() {
    arriving_.clear();
    while (!arrivals_.empty() && arrivals_.top().first == now_) {
      arriving_.push_back(timeline_.transfers[static_cast<size_t>(arrivals_.top().second)]);
      arrivals_.pop();
    }
    for (const PlacementTimeline::Transfer& each : arriving_) release(each.value, each.from);
    for (const PlacementTimeline::Transfer& each : arriving_) arrive(each);
  }

  void arrive(const PlacementTimeline::Transfer& transfer) {
    const Problem::Value& value = value_of(transfer.value);
    hold(transfer.to, value.bytes);
    for (const int32_t consumer : value.consumers) {
      if (memory(consumer) == transfer.to) receive(consumer);
    }
  }

  void receive(int32_t task) {
    if (--missing_[static_cast<size_t>(task)] == 0) make_ready(task);
  }

  static int64_t key(int32_t value, int32_t memory) {
    return (static_cast<int64_t>(value) << 32) | static_cast<uint32_t>(memory);
  }
  int32_t& uses(int32_t value, int32_t memory) { return uses_[key(value, memory)]; }

  // One use less; what is no longer used gives back its memory, and what it was a view of.
  void release(int32_t number, int32_t memory) {
    while (number >= 0 && --uses(number, memory) == 0) {
      uses_.erase(key(number, memory));
      const Problem::Value& value = value_of(number);
      const bool own = this->memory(value.producer) == memory;
      hold(memory, -(own ? value.held : value.bytes));
      number = own ? value.view_of : -1;
    }
  }

  const Problem& p_;
  const std::span<const int32_t> places_;
  PlacementTimeline timeline_;
  double now_ = 0;
  SlowedTasks slowed_;
  std::vector<int32_t> missing_;                  // by task: values that are not there yet
  std::vector<int32_t> free_slots_;               // by device
  std::vector<Ready> ready_;                      // by device: tasks, the lowest on top
  std::vector<int32_t> immediate_;                // tasks that take no time and may start
  std::vector<int32_t> touched_;                  // devices that may start a task
  Events ends_, arrivals_;                        // of tasks that nothing slows, of transfers
  std::vector<int32_t> ending_;                   // tasks, at one time
  std::unordered_map<int64_t, double> channels_;  // when each is free again
  std::unordered_map<int64_t, int32_t> uses_;     // by value and memory
  std::vector<int64_t> live_;                     // by memory
  std::vector<std::pair<int32_t, int32_t>> elsewhere_;
  std::vector<PlacementTimeline::Transfer> arriving_;
};

}  // namespace

PlacementTimeline simulate(const PlacementProblem& problem, std::span<const int32_t> places) {
  return Simulation(problem, places).run();
}

}  // namespace treenail
