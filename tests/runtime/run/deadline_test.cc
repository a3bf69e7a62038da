// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "framework/base/interrupt.h"

namespace treenail {
namespace {

using Clock = std::chrono::steady_clock;

bool cancelled_within(const CancellationToken& token, std::chrono::seconds wait) {
  const Clock::time_point end = Clock::now() + wait;
  while (!token.cancelled() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return token.cancelled();
}

TEST(Deadline, CancelsWithDeadlineExceeded) {
  CancellationToken token;
  const DeadlineScope scope(token, 5);
  ASSERT_TRUE(cancelled_within(token, std::chrono::seconds(20)));
  try {
    token.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
    EXPECT_NE(error.message().find("5 ms"), std::string::npos) << error.what();
  }
}

TEST(Deadline, AnEndedScopeLeavesItsTokenAlone) {
  auto token = std::make_unique<CancellationToken>();
  { const DeadlineScope scope(*token, 1); }
  token.reset();  // touching it now would be a use after free, which the sanitizer run shows
  CancellationToken kept;
  { const DeadlineScope scope(kept, 3'600'000); }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(kept.cancelled());
}

TEST(Deadline, TheEarlierOfTwoComesFirstAndAHugeOneNever) {
  CancellationToken late, never, early;
  const DeadlineScope far_off(never, std::numeric_limits<int64_t>::max());
  const DeadlineScope later(late, 3'600'000);
  const DeadlineScope sooner(early, 5);
  EXPECT_TRUE(cancelled_within(early, std::chrono::seconds(20)));
  EXPECT_FALSE(late.cancelled());
  EXPECT_FALSE(never.cancelled());
}

thread_local int polls = 0;

TEST(Interrupt, PollsAtMostOncePerPeriodAndOnlyInItsScope) {
  polls = 0;
  poll_interrupt();
  EXPECT_EQ(polls, 0);
  {
    const InterruptScope scope([] { ++polls; });
    const Clock::time_point end =
        Clock::now() + std::chrono::nanoseconds(2 * kInterruptPeriodNs + kInterruptPeriodNs / 2);
    while (Clock::now() < end) poll_interrupt();
    EXPECT_GE(polls, 1);
    EXPECT_LE(polls, 3);
    const int before = polls;
    {
      const InterruptScope without(
          nullptr);  // a nested run that has no poll function keeps the outer one
      std::this_thread::sleep_for(std::chrono::nanoseconds(kInterruptPeriodNs));
      poll_interrupt();
    }
    EXPECT_EQ(polls, before + 1);
  }
  const int after = polls;
  std::this_thread::sleep_for(std::chrono::nanoseconds(kInterruptPeriodNs + 1'000'000));
  poll_interrupt();
  EXPECT_EQ(polls, after);
}

}  // namespace
}  // namespace treenail
