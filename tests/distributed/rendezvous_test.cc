// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

struct Receiver final : Rendezvous::Receiver {
  void received(const Tensor* given, std::exception_ptr why) noexcept override {
    if (given != nullptr) value = given->data<int32_t>()[0];
    error = why;
    calls.fetch_add(1);
  }
  int32_t value = -1;
  std::exception_ptr error;
  std::atomic<int> calls{0};
};

Tensor number(int32_t n) { return Tensor::scalar(n); }

TEST(Rendezvous, HandsOutInTheOrderOfSending) {
  Rendezvous meeting;
  Receiver early[2], late[2];
  meeting.receive("a", early[0]);
  meeting.receive("a", early[1]);
  for (int32_t i = 0; i < 4; ++i) meeting.send("a", number(i));
  meeting.send("b", number(9));
  meeting.receive("a", late[0]);
  meeting.receive("a", late[1]);
  EXPECT_EQ(early[0].value, 0);
  EXPECT_EQ(early[1].value, 1);
  EXPECT_EQ(late[0].value, 2);
  EXPECT_EQ(late[1].value, 3);
  EXPECT_FALSE(meeting.idle());
  meeting.receive("b", late[0]);
  EXPECT_EQ(late[0].value, 9);
  EXPECT_TRUE(meeting.idle());
}

TEST(Rendezvous, ForgetsWhoWaits) {
  Rendezvous meeting;
  Receiver first, second;
  meeting.receive("a", first);
  meeting.receive("a", second);
  EXPECT_TRUE(meeting.forget(first));
  EXPECT_FALSE(meeting.forget(first));
  meeting.send("a", number(1));
  EXPECT_EQ(first.calls, 0);
  EXPECT_EQ(second.value, 1);
  EXPECT_FALSE(meeting.forget(second));
  EXPECT_TRUE(meeting.idle());
}

TEST(Rendezvous, TellsEverybodyWhyItWasAborted) {
  Rendezvous meeting;
  Receiver before, after;
  meeting.send("kept", number(1));
  meeting.receive("a", before);
  meeting.abort(std::make_exception_ptr(cancelled("over")));
  meeting.abort(std::make_exception_ptr(cancelled("again")));
  meeting.receive("kept", after);
  EXPECT_EQ(testing::error_of([&] { std::rethrow_exception(before.error); }), "Cancelled: over");
  EXPECT_EQ(testing::error_of([&] { std::rethrow_exception(after.error); }), "Cancelled: over");
  EXPECT_EQ(testing::error_of([&] { meeting.send("a", number(1)); }), "Cancelled: over");
  EXPECT_TRUE(meeting.idle());
}

TEST(Rendezvous, LosesNothingBetweenThreads) {
  Rendezvous meeting;
  constexpr int kValues = 2000;
  std::vector<Receiver> receivers(kValues);
  std::thread sender([&] {
    for (int i = 0; i < kValues; ++i) meeting.send(i % 2 == 0 ? "a" : "b", number(i));
  });
  for (int i = 0; i < kValues; ++i)
    meeting.receive(i % 2 == 0 ? "a" : "b", receivers[static_cast<size_t>(i)]);
  sender.join();
  for (int i = 0; i < kValues; ++i) EXPECT_EQ(receivers[static_cast<size_t>(i)].value, i);
  EXPECT_TRUE(meeting.idle());
}

}  // namespace
}  // namespace treenail
