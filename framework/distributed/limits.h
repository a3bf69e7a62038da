// SPDX-License-Identifier: Apache-2.0
// How much of a server each of those may take whom it tells apart (callers.h); where it knows
// nobody, all together.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace treenail {

struct Limits {
  int64_t sessions = 1000;      // open at once
  int64_t plans = 1000;         // of one session: sets of feeds, fetches and targets
  int64_t partial_runs = 1000;  // that have not ended: their values wait on the tasks
  int64_t nodes = 1'000'000;    // of what one of them needs, with functions
  int64_t memory_bytes = 0;     // that a step plans to hold on a task; 0: no limit
  // That it holds on a task at once: variables and other state in all containers, queues, values on
  // the way, constants, memory of steps; 0: no limit, -1: most_held().
  int64_t held_bytes = -1;
  int64_t step_seconds = 0;                   // that one step takes; 0: no limit
  int64_t idle_seconds = 86'400;              // after which an unused session may be closed
  int64_t message_bytes = int64_t{16} << 30;  // of one request; of all that have parts under way

  // By its name above, with "-" or "_". Errors: InvalidArgument for a name or a number that is
  // none.
  void set(std::string_view name, int64_t value);
  // The number of held_bytes, at a server that knows whom it serves, or does not.
  int64_t most_held(bool knows_callers) const;
  // With "-".
  static std::vector<std::string_view> names();
};

}  // namespace treenail
