// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/limits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/device/allocator.h"

namespace treenail {
namespace {

struct Field {
  std::string_view name;
  int64_t Limits::*value;
  int64_t least;
};
constexpr std::array<Field, 9> kFields = {{{"sessions", &Limits::sessions, 1},
                                           {"plans", &Limits::plans, 1},
                                           {"partial-runs", &Limits::partial_runs, 1},
                                           {"nodes", &Limits::nodes, 1},
                                           {"memory-bytes", &Limits::memory_bytes, 0},
                                           {"held-bytes", &Limits::held_bytes, 0},
                                           {"step-seconds", &Limits::step_seconds, 0},
                                           {"idle-seconds", &Limits::idle_seconds, 1},
                                           {"message-bytes", &Limits::message_bytes, 1}}};

}  // namespace

void Limits::set(std::string_view name, int64_t value) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  for (const Field& field : kFields) {
    if (field.name != dashed) continue;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000;
    if (value < field.least || value > kMost) {
      throw invalid_argument("the limit of ", dashed, " is a number in [", field.least, ", ", kMost,
                             "], not ", value);
    }
    this->*field.value = value;
    return;
  }
  throw invalid_argument("there is no limit of \"", name, "\"", did_you_mean(dashed, names()));
}

// One that takes all it may leaves a fifth for the others.
int64_t Limits::most_held(bool knows_callers) const {
  if (held_bytes >= 0) return held_bytes;
  return knows_callers ? Allocator::host().limit() / 5 * 4 : 0;
}

std::vector<std::string_view> Limits::names() {
  std::vector<std::string_view> all;
  for (const Field& field : kFields) all.push_back(field.name);
  return all;
}

}  // namespace treenail
