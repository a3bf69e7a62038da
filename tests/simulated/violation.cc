// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/violation.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace treenail::simulated {
namespace {

struct Recorded {
  std::mutex mutex;
  bool on = false;
  int count = 0;
  std::string last;

  // Never destroyed: the devices' threads outlive main().
  static Recorded& instance() {
    static auto* const made = new Recorded;
    return *made;
  }
};

}  // namespace

void violation(const std::string& text) noexcept {
  std::fprintf(stderr, "%s\n", text.c_str());
  Recorded& recorded = Recorded::instance();
  const std::lock_guard lock(recorded.mutex);
  if (!recorded.on) std::abort();
  ++recorded.count;
  recorded.last = text;
}

void record_violations(bool on) noexcept {
  const std::lock_guard lock(Recorded::instance().mutex);
  Recorded::instance().on = on;
}

int take_violations(std::string& last) noexcept {
  Recorded& recorded = Recorded::instance();
  const std::lock_guard lock(recorded.mutex);
  last = std::exchange(recorded.last, "");
  return std::exchange(recorded.count, 0);
}

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  return text;
}

}  // namespace treenail::simulated
