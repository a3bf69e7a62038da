// SPDX-License-Identifier: Apache-2.0
// The simulator against a second one, written plainly from its rules (time goes on from one event
// to the next, everything is looked for everywhere), and what the search finds against the best of
// all placements.
#include "framework/placement/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;

struct Plain {
  std::vector<double> start, finish;
  double makespan = 0;
  std::vector<int64_t> peak;
};

// What lives in a memory: values by number, with why each is still needed.
class PlainMemory {
 public:
  explicit PlainMemory(const Problem& p, std::vector<int32_t> places)
      : p_(p), places_(std::move(places)), live(p.capacities.size()) {}
  int32_t memory(int32_t task) const {
    return p_.devices[static_cast<size_t>(places_[static_cast<size_t>(task)])].memory;
  }
  int64_t bytes(int32_t memory) const {
    int64_t sum = 0;
    for (const int32_t v : live[static_cast<size_t>(memory)]) {
      const Problem::Value& value = p_.values[static_cast<size_t>(v)];
      sum += this->memory(value.producer) == memory ? value.held : value.bytes;
    }
    return sum;
  }

  const Problem& p_;
  const std::vector<int32_t> places_;
  std::vector<std::set<int32_t>> live;
};

class PlainSimulator {
 public:
  PlainSimulator(const Problem& p, const std::vector<int32_t>& places)
      : p_(p), places_(places), memory_(p, places) {}

  Plain run() {
    const size_t n = p_.tasks.size();
    result_.start.assign(n, -1);
    result_.finish.assign(n, -1);
    left_.assign(n, 0);
    ended_.assign(n, false);
    result_.peak.assign(p_.capacities.size(), 0);
    state_.assign(p_.capacities.size(), 0);
    for (size_t u = 0; u < p_.units.size(); ++u) {
      for (size_t t = 0; t < n; ++t) {
        if (p_.tasks[t].unit != static_cast<int32_t>(u)) continue;
        state_[static_cast<size_t>(memory_.memory(static_cast<int32_t>(t)))] +=
            p_.units[u].state_bytes;
        break;
      }
    }
    note_peaks();
    double now = 0;
    for (;;) {
      step(now);
      predict_ends(now);
      double next = std::numeric_limits<double>::infinity();
      for (size_t t = 0; t < n; ++t)
        if (result_.start[t] >= 0 && !ended_[t]) next = std::min(next, result_.finish[t]);
      for (const auto& [key, at] : arrival_)
        if (!there_.contains(key)) next = std::min(next, at);
      if (std::isinf(next)) break;
      work_off(next - now);
      now = next;
      // What ends, then what arrives.
      for (size_t t = 0; t < n; ++t)
        if (result_.start[t] >= 0 && !ended_[t] && result_.finish[t] == now)
          end(static_cast<int32_t>(t), now);
      for (const auto& [key, at] : arrival_) {
        if (at != now || there_.contains(key)) continue;
        there_.insert(key);
        memory_.live[static_cast<size_t>(key.second)].insert(key.first);
      }
      drop_dead();
      note_peaks();
    }
    for (const double f : result_.finish) result_.makespan = std::max(result_.makespan, f);
    return result_;
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // value, memory

  bool works(size_t device) const {
    for (size_t t = 0; t < p_.tasks.size(); ++t) {
      if (places_[t] == static_cast<int32_t>(device) && result_.start[t] >= 0 && !ended_[t] &&
          p_.cost(static_cast<int32_t>(t), places_[t]) > 0)
        return true;
    }
    return false;
  }
  // Seconds that one of the device's work takes now.
  double stretch(int32_t device) const {
    const Problem::Device& own = p_.devices[static_cast<size_t>(device)];
    double others = 0, busy = 0;
    for (size_t d = 0; d < p_.devices.size(); ++d) {
      if (own.host < 0 || p_.devices[d].host != own.host || static_cast<int32_t>(d) == device)
        continue;
      others += 1;
      busy += works(d) ? 1 : 0;
    }
    return others == 0 ? 1 : 1 + (own.slowdown - 1) * busy / others;
  }
  void predict_ends(double now) {
    for (size_t t = 0; t < p_.tasks.size(); ++t) {
      if (result_.start[t] >= 0 && !ended_[t] &&
          p_.devices[static_cast<size_t>(places_[t])].host >= 0)
        result_.finish[t] = now + left_[t] * stretch(places_[t]);
    }
  }
  void work_off(double seconds) {
    std::vector<double> stretches;
    for (size_t d = 0; d < p_.devices.size(); ++d)
      stretches.push_back(stretch(static_cast<int32_t>(d)));
    for (size_t t = 0; t < p_.tasks.size(); ++t) {
      if (result_.start[t] >= 0 && !ended_[t])
        left_[t] -= seconds / stretches[static_cast<size_t>(places_[t])];
    }
  }

  void step(double now) {
    for (size_t t = 0; t < p_.tasks.size(); ++t) {
      const auto task = static_cast<int32_t>(t);
      if (result_.start[t] < 0 && p_.cost(task, places_[t]) == 0 && ready_at(task) <= now)
        start(task, now);
    }
    for (size_t d = 0; d < p_.devices.size(); ++d) {
      for (;;) {
        int running = 0;
        std::vector<int32_t> ready;
        for (size_t t = 0; t < p_.tasks.size(); ++t) {
          if (places_[t] != static_cast<int32_t>(d)) continue;
          if (p_.cost(static_cast<int32_t>(t), places_[t]) == 0) continue;
          if (result_.start[t] >= 0) {
            running += !ended_[t];
          } else if (ready_at(static_cast<int32_t>(t)) <= now) {
            ready.push_back(static_cast<int32_t>(t));
          }
        }
        if (ready.empty() || running >= p_.devices[d].slots) break;
        const int32_t task = std::ranges::min(ready);
        start(task, now);
      }
    }
  }

  double ready_at(int32_t task) const {
    double at = 0;
    for (const int32_t v : p_.tasks[static_cast<size_t>(task)].inputs) {
      const int32_t producer = p_.values[static_cast<size_t>(v)].producer;
      const int32_t here = memory_.memory(task);
      if (memory_.memory(producer) == here) {
        if (!ended_[static_cast<size_t>(producer)]) return INFINITY;
        at = std::max(at, result_.finish[static_cast<size_t>(producer)]);
      } else if (there_.contains({v, here})) {
        at = std::max(at, arrival_.at({v, here}));
      } else {
        return INFINITY;
      }
    }
    return at;
  }

  void start(int32_t task, double now) {
    const auto t = static_cast<size_t>(task);
    result_.start[t] = now;
    left_[t] = p_.cost(task, places_[t]);
    result_.finish[t] = now + left_[t];
    for (const int32_t v : p_.tasks[t].outputs)
      memory_.live[static_cast<size_t>(memory_.memory(task))].insert(v);
    note_peaks();
  }

  void end(int32_t task, double now) {
    ended_[static_cast<size_t>(task)] = true;
    const int32_t from = memory_.memory(task);
    for (const int32_t v : p_.tasks[static_cast<size_t>(task)].outputs) {
      const Problem::Value& value = p_.values[static_cast<size_t>(v)];
      std::set<int32_t> elsewhere;
      for (const int32_t consumer : value.consumers)
        if (memory_.memory(consumer) != from) elsewhere.insert(memory_.memory(consumer));
      for (const int32_t to : elsewhere) {
        const Problem::Link& link = p_.links[static_cast<size_t>(
            p_.link_of[static_cast<size_t>(from) * p_.capacities.size() +
                       static_cast<size_t>(to)])];
        using Sharing = Problem::Sharing;
        const auto own = link.sharing == Sharing::kPair ? to : -1;
        std::vector<double*> queues;
        if (link.sharing != Sharing::kDestination) queues.push_back(&free_[{0, from, own}]);
        if (link.sharing == Sharing::kDestination || link.sharing == Sharing::kBoth)
          queues.push_back(&free_[{1, to, -1}]);
        double start = now;
        for (const double* queue : queues) start = std::max(start, *queue);
        const double sent = start + static_cast<double>(value.bytes) * link.seconds_per_byte;
        for (double* queue : queues) *queue = sent;
        arrival_[{v, to}] = sent + link.latency;
      }
    }
  }

  // Needed: by a producer that runs, a task that has not ended, a transfer under way, a live view.
  bool needed(int32_t v, int32_t memory) const {
    const Problem::Value& value = p_.values[static_cast<size_t>(v)];
    const bool own = memory_.memory(value.producer) == memory;
    if (own && !ended_[static_cast<size_t>(value.producer)]) return true;
    for (const int32_t consumer : value.consumers)
      if (memory_.memory(consumer) == memory && !ended_[static_cast<size_t>(consumer)]) return true;
    if (own) {
      for (const auto& [key, at] : arrival_)
        if (key.first == v && !there_.contains(key)) return true;
    }
    return std::ranges::any_of(memory_.live[static_cast<size_t>(memory)], [&](int32_t other) {
      const Problem::Value& view = p_.values[static_cast<size_t>(other)];
      return view.view_of == v && memory_.memory(view.producer) == memory && needed(other, memory);
    });
  }

  void drop_dead() {
    for (size_t m = 0; m < memory_.live.size(); ++m)
      std::erase_if(memory_.live[m],
                    [&](int32_t v) { return !needed(v, static_cast<int32_t>(m)); });
  }

  void note_peaks() {
    for (size_t m = 0; m < result_.peak.size(); ++m)
      result_.peak[m] =
          std::max(result_.peak[m], state_[m] + memory_.bytes(static_cast<int32_t>(m)));
  }

  const Problem& p_;
  const std::vector<int32_t>& places_;
  PlainMemory memory_;
  Plain result_;
  std::vector<bool> ended_;
  std::vector<double> left_;  // by task: seconds of work
  std::map<Key, double> arrival_;
  std::set<Key> there_;
  std::map<std::tuple<int, int32_t, int32_t>, double> free_;  // when a queue is free
  std::vector<int64_t> state_;
};

class RandomProblems {
 public:
  explicit RandomProblems(uint32_t seed) : random_(seed) {}

  Problem next(int tasks, int devices, bool rich) {
    Problem p;
    p.cost_classes = devices;
    for (int d = 0; d < devices; ++d) {
      const bool shared = rich && d > 0 && one_in(4);
      if (!shared) p.capacities.push_back(0);
      p.devices.push_back({static_cast<int32_t>(p.capacities.size()) - 1, rich ? to(1, 2) : 1, d});
    }
    add_links(p, rich);
    for (int t = 0; t < tasks; ++t) add_task(p, t, rich);
    return p;
  }
  // The same with some devices on hosts where they slow each other. `exactly`: by two, and by
  // powers of 2, so that sums stay exact; else nothing happens at one time by chance.
  Problem contended(Problem p, bool exactly) {
    for (size_t d = 0; d < p.devices.size(); ++d) {
      p.devices[d].host = exactly ? static_cast<int32_t>(d / 2) : to(-1, 1);
      p.devices[d].slowdown = exactly ? 1 << to(0, 2) : real(1, 2.5);
    }
    if (exactly) return p;
    for (double& seconds : p.seconds) seconds *= real(1, 1.1);
    for (Problem::Link& link : p.links) link.latency += real(0, 0.1);
    return p;
  }
  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool one_in(int n) { return to(1, n) == 1; }
  int to(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

 private:
  void add_links(Problem& p, bool rich) {
    const auto memories = static_cast<int>(p.capacities.size());
    // From links that cost as much as the tasks to such that cost next to nothing.
    const double scale = 1.0 / (1 << to(0, 5));
    for (int i = 0; i < memories * memories; ++i) {
      p.link_of.push_back(static_cast<int32_t>(p.links.size()));
      p.links.push_back({scale * to(0, 2), scale * to(1, 4),
                         rich ? static_cast<Problem::Sharing>(to(0, 3)) : Problem::Sharing::kPair});
    }
  }

  // Whole quarters, so that things happen at one time, and sums are exact.
  void add_task(Problem& p, int t, bool rich) {
    p.tasks.emplace_back();
    const bool joins = rich && t > 0 && one_in(4);
    if (!joins) p.units.push_back({{}, rich ? to(0, 3) : 0});
    p.tasks.back().unit = joins ? to(0, static_cast<int>(p.units.size()) - 1)
                                : static_cast<int32_t>(p.units.size()) - 1;
    const double size = to(rich ? 0 : 1, 12);
    for (int d = 0; d < p.cost_classes; ++d) p.seconds.push_back(size * 0.25 * to(2, 6));
    for (int v = 0; v < static_cast<int>(p.values.size()); ++v) {
      Problem::Value& value = p.values[static_cast<size_t>(v)];
      if (value.producer < t - 4 || !one_in(3)) continue;
      value.consumers.push_back(t);
      p.tasks.back().inputs.push_back(v);
    }
    for (int i = rich ? to(0, 2) : 1; i > 0; --i) {
      p.tasks.back().outputs.push_back(static_cast<int32_t>(p.values.size()));
      Problem::Value value{t, to(0, 6), 0, -1, {}};
      value.held = value.bytes;
      if (rich && one_in(4) && !p.tasks.back().inputs.empty()) {
        value.view_of = p.tasks.back().inputs[0];
        value.held = 0;
      }
      p.values.push_back(value);
    }
  }

  std::mt19937 random_;
};

std::vector<int32_t> random_places(const Problem& p, RandomProblems& random) {
  std::vector<int32_t> by_unit;
  for (size_t u = 0; u < p.units.size(); ++u)
    by_unit.push_back(random.to(0, static_cast<int>(p.devices.size()) - 1));
  std::vector<int32_t> places;
  for (const Problem::Task& task : p.tasks)
    places.push_back(by_unit[static_cast<size_t>(task.unit)]);
  return places;
}

TEST(PlacementSimulation, AgreesWithAPlainOne) {
  RandomProblems random(1);
  for (int i = 0; i < 1200; ++i) {
    Problem p = random.next(random.to(1, 14), random.to(1, 4), true);
    if (i >= 600) p = random.contended(p, true);
    ASSERT_NO_THROW(check_problem(p));
    const std::vector<int32_t> places = random_places(p, random);
    const PlacementTimeline found = simulate(p, places);
    const Plain plain = PlainSimulator(p, places).run();
    ASSERT_EQ(found.start, plain.start) << "problem " << i;
    ASSERT_EQ(found.finish, plain.finish) << "problem " << i;
    ASSERT_EQ(found.makespan, plain.makespan) << "problem " << i;
    ASSERT_EQ(found.peak_bytes, plain.peak) << "problem " << i;
  }
}

TEST(PlacementSimulation, AgreesWithAPlainOneWhereManyDevicesSlowEachOther) {
  RandomProblems random(4);
  int slowed = 0;
  for (int i = 0; i < 600; ++i) {
    const Problem p = random.contended(random.next(random.to(1, 14), random.to(2, 5), true), false);
    const std::vector<int32_t> places = random_places(p, random);
    const PlacementTimeline found = simulate(p, places);
    const Plain plain = PlainSimulator(p, places).run();
    for (size_t t = 0; t < p.tasks.size(); ++t) {
      ASSERT_NEAR(found.start[t], plain.start[t], 1e-9) << "problem " << i;
      ASSERT_NEAR(found.finish[t], plain.finish[t], 1e-9) << "problem " << i;
      const double alone = p.cost(static_cast<int32_t>(t), places[t]);
      slowed += found.finish[t] - found.start[t] > 1.01 * alone ? 1 : 0;
    }
    ASSERT_EQ(found.peak_bytes, plain.peak) << "problem " << i;
  }
  EXPECT_GT(slowed, 500);
}

// The least makespan of all placements.
double optimum(const Problem& p) {
  std::vector<int32_t> places(p.tasks.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  const auto last = static_cast<int32_t>(p.devices.size()) - 1;
  for (;;) {
    best = std::min(best, simulate(p, places).makespan);
    size_t i = 0;
    while (i < places.size() && places[i] == last) places[i++] = 0;
    if (i == places.size()) return best;
    ++places[i];
  }
}

// Of 200 problems: `change` makes each of a random one.
template <class F>
void expect_near_the_optimum(RandomProblems& random, F&& change) {
  std::vector<double> ratios;
  for (int i = 0; i < 200; ++i) {
    const Problem p = change(random.next(random.to(2, 8), 3, false));
    ratios.push_back(search_placement(p).timeline.makespan / optimum(p));
    ASSERT_GE(ratios.back(), 1.0);
  }
  std::ranges::sort(ratios);
  ::testing::Test::RecordProperty("median", std::to_string(ratios[100]));
  ::testing::Test::RecordProperty("ninety", std::to_string(ratios[180]));
  std::printf("ratio to the optimum: median %.3f, 90 %% %.3f, worst %.3f\n", ratios[100],
              ratios[180], ratios.back());
  EXPECT_LE(ratios[100], 1.1);
  EXPECT_LE(ratios[180], 1.5);
}

TEST(PlacementSearch, ComesNearTheOptimum) {
  RandomProblems random(2);
  expect_near_the_optimum(random, [](Problem p) { return p; });
}

TEST(PlacementSearch, ComesNearTheOptimumWhereDevicesSlowEachOther) {
  RandomProblems random(2);
  expect_near_the_optimum(random, [&](Problem p) {
    p = random.contended(p, false);
    for (Problem::Device& device : p.devices) device.host = 0;
    return p;
  });
}

}  // namespace
}  // namespace treenail
