// SPDX-License-Identifier: Apache-2.0
// How far clocks are off against each other, as a few calls tell it: held to a simulated clock.
#include "framework/distributed/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>

namespace treenail {
namespace {

TEST(ClockBounds, HoldTheOffsetOfAnyClock) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int round = 0; round < 2000; ++round) {
    const int64_t offset = round % 4 == 0 ? 0 : below(2'000'000'000) - 1'000'000'000;
    ClockBounds bounds;
    int64_t now = 1 + below(1'000'000'000'000), shortest = std::numeric_limits<int64_t>::max();
    for (int call = 0; call < 5; ++call) {
      const int64_t asked = now, there = asked + below(300'000), back = there + below(300'000);
      bounds.narrow(asked, there + offset, back);
      shortest = std::min(shortest, back - asked);
      now = back + below(100'000);
    }
    const ClockOffset found = bounds.offset();
    EXPECT_LE(std::abs(found.ns - offset), found.error_ns);
    EXPECT_LE(found.error_ns, shortest + 1);
    if (offset == 0) {
      EXPECT_EQ(found.ns, 0);
    }
  }
}

TEST(ClockBounds, TakeWhatNoClockSays) {
  ClockBounds bounds;
  bounds.narrow(1000, std::numeric_limits<int64_t>::min(), 2000);
  bounds.narrow(3000, std::numeric_limits<int64_t>::max(), 4000);
  EXPECT_GE(bounds.offset().error_ns, 0);
}

TEST(StepTrace, RefusesTimesThatCannotBe) {
  StepTrace trace({{{"ps", 0}, {std::numeric_limits<int64_t>::max() / 8, 5}}});
  RunMetadata did;
  did.nodes.emplace_back();
  did.begun_ns = std::numeric_limits<int64_t>::min() / 2;
  trace.move_to_own_clock(did, {"ps", 0});
  EXPECT_ANY_THROW(trace.finish(did));
}

}  // namespace
}  // namespace treenail
