// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <initializer_list>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "framework/runtime/state/resource_manager.h"
#include "tests/runtime/state/started_call.h"
#include "tests/support/child.h"
#include "tests/support/expect_error.h"
#include "tests/support/sanitizers.h"

namespace treenail {
namespace {

using testing::error_of;
using testing::StartedCall;

IntrusivePtr<Barrier> pairs() {
  return make_counted<Barrier>(
      "bar", BarrierOptions{{DType::kInt64, DType::kString}, {Shape(), PartialShape()}});
}

Tensor keys(std::initializer_list<const char*> names) {
  Tensor t(DType::kString, Shape({std::ssize(names)}));
  StringElement* to = t.data<StringElement>();
  for (const char* name : names) *to++ = StringElement(name);
  return t;
}
Tensor numbers(std::initializer_list<int64_t> values) { return Tensor::vector<int64_t>(values); }

std::string names_of(const StartedCall& call) {
  std::string text;
  for (const StringElement& key : call.output(1).values<StringElement>()) text += key.view();
  return text;
}

TEST(Barrier, GivesCompleteElementsInTheOrderOfTheirBeginning) {
  const auto bar = pairs();
  StartedCall call(4);
  bar->take(call.context(), call.done(), {.count = 2});
  bar->insert(0, keys({"a"}), numbers({1}));
  bar->insert(0, keys({"b", "c"}), numbers({2, 3}));
  bar->insert(1, keys({"c"}), keys({"third"}));
  EXPECT_EQ(call.times(), 0);
  EXPECT_EQ(bar->ready_size(), 1);
  EXPECT_EQ(bar->incomplete_size(), 2);
  bar->insert(1, keys({"a"}), keys({"first"}));
  ASSERT_EQ(call.error(), "");
  ASSERT_EQ(call.times(), 1);
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(call.output(0).data<int64_t>()[0], kFirst);
  EXPECT_EQ(call.output(0).data<int64_t>()[1], kFirst + 1);
  EXPECT_EQ(names_of(call), "ac");
  EXPECT_EQ(call.output(2).data<int64_t>()[1], 3);
  EXPECT_EQ(call.output(3).data<StringElement>()[0].view(), "first");
}

TEST(Barrier, ServesWhoWaitsLongestFirst) {
  const auto bar = make_counted<Barrier>("bar", BarrierOptions{{DType::kInt64}, {Shape()}});
  StartedCall many(3), one(3);
  bar->take(many.context(), many.done(), {.count = 3});
  bar->take(one.context(), one.done(), {.count = 1});
  bar->insert(0, keys({"a", "b"}), numbers({1, 2}));
  EXPECT_EQ(one.times(), 0);
  many.cancel();
  EXPECT_EQ(many.error(), "Cancelled: the operation was cancelled");
  EXPECT_EQ(names_of(one), "a");
  EXPECT_EQ(bar->ready_size(), 1);
}

TEST(Barrier, EndsThoseWhoWaitForTooManyWhenItIsClosed) {
  const auto bar = pairs();
  bar->insert(0, keys({"a", "b"}), numbers({1, 2}));
  bar->insert(1, keys({"a"}), keys({"x"}));
  StartedCall enough(4), many(4), small(4);
  bar->take(many.context(), many.done(), {.count = 3});
  bar->take(enough.context(), enough.done(), {.count = 2});
  bar->take(small.context(), small.done(), {.count = 2, .allow_small_batch = true});
  bar->close(false);
  EXPECT_EQ(many.error(),
            "OutOfRange: Barrier 'bar' is closed and has insufficient elements (requested 3, total "
            "size 2)");
  EXPECT_EQ(enough.times() + small.times(), 0);
  bar->close(true);
  EXPECT_EQ(enough.error().substr(0, 10), "OutOfRange");
  EXPECT_EQ(names_of(small), "a");
}

TEST(Barrier, RefusesAsAWhole) {
  const auto bar = pairs();
  bar->insert(0, keys({"a"}), numbers({1}));
  EXPECT_EQ(error_of([&] {
              bar->insert(0, keys({"b", "a"}), numbers({1, 2}));
            }),
            "InvalidArgument: Key a already has a value for component 0 in barrier bar");
  EXPECT_EQ(
      error_of([&] { bar->insert(0, keys({"b"}), keys({"x"})); }),
      "InvalidArgument: component 0 of barrier bar has dtype int64, the values are string[1]");
  EXPECT_EQ(
      error_of([&] { bar->insert(-1, keys({"b"}), keys({"x"})); }),
      "InvalidArgument: component_index = -1 is not in [0, 2), the components of barrier bar");
  bar->close(false);
  EXPECT_EQ(error_of([&] {
              bar->insert(1, keys({"a", "a"}), keys({"x", "y"}));
            }),
            "Cancelled: Barrier bar is closed, but attempted to insert a brand new key: a. Number "
            "of incomplete keys: 1.");
  EXPECT_EQ(bar->incomplete_size(), 1);
  EXPECT_EQ(bar->ready_size(), 0);
}

TEST(Barrier, BelongsToAName) {
  ResourceManager resources;
  const BarrierOptions options{{DType::kInt64}, {Shape()}};
  const auto bar = named_barrier(resources, "", "x", options);
  EXPECT_EQ(named_barrier(resources, "", "x", options).get(), bar.get());
  EXPECT_EQ(error_of([&] {
              named_barrier(resources, "", "x", {{DType::kInt64}, {PartialShape()}});
            }),
            "InvalidArgument: Shared barrier x has component types [int64] and shapes [[]]; it is "
            "asked for with types [int64] and shapes [?]");
}

TEST(Barrier, SurvivesForksWhileThreadsInsert) {
#ifdef TREENAIL_ASAN
  GTEST_SKIP() << "the sanitizer's own allocator may stay locked in the child";
#endif
  const auto bar = make_counted<Barrier>("bar", BarrierOptions{{DType::kInt64}, {Shape()}});
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    while (!stop) {
      bar->insert(0, keys({"a", "b"}), numbers({1, 2}));
      StartedCall call(3);
      bar->take(call.context(), call.done(), {.count = 2});
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(test::in_child([&] {
                bar->insert(0, keys({"c"}), numbers({3}));
                StartedCall call(3);
                bar->take(call.context(), call.done(), {.count = 1});
                return call.times() == 1 && call.error().empty() ? 0 : 1;
              }),
              0);
  }
  stop = true;
  thread.join();
}

}  // namespace
}  // namespace treenail
