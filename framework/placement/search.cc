// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/search.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "framework/base/text.h"
#include "framework/placement/greedy.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;

class Search {
 public:
  explicit Search(const Problem& problem) : p_(problem) {}

  PlacementChoice run() {
    for (const int32_t device : different_devices())
      consider(concat("single device ", device), of_units([&](size_t unit) {
                 return allowed(unit, device) ? device : first_allowed(unit);
               }));
    if (p_.devices.size() > 1) {
      consider("greedy", place_greedily(p_, GreedyOrder::kTasks));
      consider("greedy by critical path", place_greedily(p_, GreedyOrder::kCriticalPath));
      consider("round robin", round_robin());
    }
    if (best_.excess > 0) consider("most room first", by_room());
    return std::move(best_.choice);
  }

 private:
  struct Best {
    PlacementChoice choice;
    int64_t excess = 0;  // bytes beyond the memories
  };

  bool allowed(size_t unit, int32_t device) const {
    const std::vector<int32_t>& devices = p_.units[unit].devices;
    return devices.empty() || std::ranges::binary_search(devices, device);
  }
  int32_t first_allowed(size_t unit) const {
    return p_.units[unit].devices.empty() ? 0 : p_.units[unit].devices[0];
  }

  // The first of those that nothing tells apart when they are alone.
  std::vector<int32_t> different_devices() const {
    constexpr size_t kFew = 16;
    std::map<std::tuple<int32_t, int32_t, int64_t>, int> seen;
    std::vector<int32_t> different;
    for (size_t d = 0; d < p_.devices.size(); ++d) {
      const Problem::Device& device = p_.devices[d];
      const int64_t capacity = p_.capacities[static_cast<size_t>(device.memory)];
      if (seen[{device.cost_class, device.slots, capacity}]++ == 0 || p_.devices.size() <= kFew)
        different.push_back(static_cast<int32_t>(d));
    }
    return different;
  }

  template <class F>
  std::vector<int32_t> of_units(F&& device_of) const {
    std::vector<int32_t> places;
    places.reserve(p_.tasks.size());
    for (const Problem::Task& task : p_.tasks)
      places.push_back(device_of(static_cast<size_t>(task.unit)));
    return places;
  }

  // Units in the order of their first tasks, each on the next device that it may run on.
  std::vector<int32_t> round_robin() const {
    std::vector<int32_t> by_unit(p_.units.size(), -1);
    int32_t next = 0;
    const auto count = static_cast<int32_t>(p_.devices.size());
    return of_units([&](size_t unit) {
      int32_t& place = by_unit[unit];
      if (place >= 0) return place;
      place = first_allowed(unit);
      for (int32_t step = 0; step < count; ++step) {
        const int32_t device = (next + step) % count;
        if (!allowed(unit, device)) continue;
        place = device;
        next = (device + 1) % count;
        break;
      }
      return place;
    });
  }

  // Where little fits: each unit where most memory is left, by all that it will ever hold there.
  std::vector<int32_t> by_room() const {
    std::vector<int64_t> needed(p_.units.size(), 0);
    for (size_t unit = 0; unit < needed.size(); ++unit) needed[unit] = p_.units[unit].state_bytes;
    for (const Problem::Task& task : p_.tasks)
      for (const int32_t output : task.outputs)
        needed[static_cast<size_t>(task.unit)] += p_.values[static_cast<size_t>(output)].held;
    std::vector<double> room;
    for (const int64_t capacity : p_.capacities)
      room.push_back(capacity == 0 ? 1e300 : static_cast<double>(capacity));
    std::vector<int32_t> by_unit(p_.units.size(), -1);
    return of_units([&](size_t unit) {
      int32_t& place = by_unit[unit];
      if (place >= 0) return place;
      const auto room_of = [&](int32_t device) -> double& {
        return room[static_cast<size_t>(p_.memory_of(device))];
      };
      place = first_allowed(unit);
      for (int32_t d = 0; d < static_cast<int32_t>(p_.devices.size()); ++d)
        if (allowed(unit, d) && room_of(d) > room_of(place)) place = d;
      room_of(place) -= static_cast<double>(needed[unit]);
      return place;
    });
  }

  void consider(std::string strategy, std::vector<int32_t> places) {
    PlacementTimeline timeline = simulate(p_, places);
    int64_t excess = 0;
    for (size_t m = 0; m < p_.capacities.size(); ++m) {
      if (p_.capacities[m] > 0)
        excess += std::max<int64_t>(0, timeline.peak_bytes[m] - p_.capacities[m]);
    }
    PlacementChoice& best = best_.choice;
    best.candidates.push_back({std::move(strategy), timeline.makespan, excess == 0});
    const bool better = best.candidates.size() == 1 || excess < best_.excess ||
                        (excess == best_.excess && timeline.makespan < best.timeline.makespan);
    if (!better) return;
    best.places = std::move(places);
    best.timeline = std::move(timeline);
    best.chosen = best.candidates.size() - 1;
    best_.excess = excess;
  }

  const Problem& p_;
  Best best_;
};

}  // namespace

PlacementChoice search_placement(const PlacementProblem& problem) {
  check_problem(problem);
  return Search(problem).run();
}

}  // namespace treenail
