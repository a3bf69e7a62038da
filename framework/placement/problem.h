// SPDX-License-Identifier: Apache-2.0
// A placement problem in numbers: tasks that hand on values, devices that run them, links that
// carry the values. What it is made of: cost_placer.h; how a placement is judged: simulation.h; how
// a good one is found: search.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace treenail {

struct PlacementProblem {
  // What a task hands on; without bytes, that it has ended (a control edge).
  struct Value {
    int32_t producer = 0;
    int64_t bytes = 0;  // that a transfer carries
    int64_t held = 0;   // of memory while it lives; 0 where it shares what lives anyway
    // An input of the producer whose memory it shares, and keeps, where both lie in one; -1: none.
    int32_t view_of = -1;
    std::vector<int32_t> consumers;  // tasks, each once, rising
  };
  struct Task {
    int32_t unit = 0;
    std::vector<int32_t> inputs;  // values, each once
    std::vector<int32_t> outputs;
    // It costs nothing and needs nothing, as a constant or the read of a variable: the search puts
    // it where it is first read.
    bool floats = false;
  };
  // Tasks that run on one device.
  struct Unit {
    std::vector<int32_t> devices;  // that may run it, rising; empty: all
    int64_t state_bytes = 0;       // that lie there from run to run
  };
  struct Device {
    int32_t memory = 0;
    int32_t slots = 1;       // tasks at once
    int32_t cost_class = 0;  // devices of one class take the same time
    // Devices of one host slow each other (contention.h); -1: nothing does.
    int32_t host = -1;
    double slowdown = 1;  // time of a task while all others of the host are busy, by that alone
  };
  // Whose transfers wait for one another.
  enum class Sharing : uint8_t {
    kPair,         // those from one memory to one other
    kSource,       // all that leave the memory
    kDestination,  // all that go there
    kBoth,         // all that leave the one, and all that go to the other
  };
  struct Link {
    double latency = 0;           // seconds from the last byte sent to the value there
    double seconds_per_byte = 0;  // that the link is occupied
    Sharing sharing = Sharing::kPair;
  };

  std::vector<Task> tasks;  // each behind those whose values it takes
  std::vector<Value> values;
  std::vector<Unit> units;
  std::vector<Device> devices;
  std::vector<int64_t> capacities;  // by memory, in bytes; 0: no limit
  std::vector<double> seconds;      // by task and cost class
  int32_t cost_classes = 1;
  std::vector<Link> links;
  std::vector<int32_t> link_of;  // by source and destination memory: in `links`

  double cost(int32_t task, int32_t device) const {
    return seconds[static_cast<size_t>(task) * static_cast<size_t>(cost_classes) +
                   static_cast<size_t>(devices[static_cast<size_t>(device)].cost_class)];
  }
  int32_t memory_of(int32_t device) const { return devices[static_cast<size_t>(device)].memory; }
  int32_t num_memories() const { return static_cast<int32_t>(capacities.size()); }
  const Link& link(int32_t from, int32_t to) const {
    return links[static_cast<size_t>(
        link_of[static_cast<size_t>(from) * capacities.size() + static_cast<size_t>(to)])];
  }
  // Transfers of which one number is the same wait for one another; the two may be the same.
  std::array<int64_t, 2> channels(int32_t from, int32_t to) const {
    const int64_t memories = num_memories(), source = from, destination = memories + to;
    const int64_t pair = (2 + source) * memories + to;
    switch (link(from, to).sharing) {
      case Sharing::kSource:
        return {source, source};
      case Sharing::kDestination:
        return {destination, destination};
      case Sharing::kBoth:
        return {source, destination};
      case Sharing::kPair:
        break;
    }
    return {pair, pair};
  }
};

// Errors: InvalidArgument, saying which number, for what is no problem: tasks out of order, numbers
// out of range, negative costs, infinite or not.
void check_problem(const PlacementProblem& problem);

}  // namespace treenail
