// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/staging_area.h"

#include <gtest/gtest.h>

#include <deque>
#include <span>

#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/string_element.h"
#include "tests/runtime/state/started_call.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using testing::StartedCall;

IntrusivePtr<StagingArea> area_of(StagingLimits limits = {}) {
  return make_counted<StagingArea>("area", limits);
}

StagedTuple number(int64_t value) { return {Tensor::scalar<int64_t>(value)}; }
int64_t number_of(const StartedCall& call) { return *call.output().data<int64_t>(); }

void put(StagingArea& area, int64_t value) {
  StartedCall call(0);
  area.put(call.context(), call.done(), number(value));
  ASSERT_EQ(call.times(), 1);
}

TEST(StagingArea, ServesPutsAndGetsInTheirOrder) {
  const auto area = area_of({.capacity = 2});
  StartedCall first, second;
  area->get(first.context(), first.done());
  area->get(second.context(), second.done());
  put(*area, 1);
  put(*area, 2);
  EXPECT_EQ(number_of(first), 1);
  EXPECT_EQ(number_of(second), 2);
  put(*area, 3);
  put(*area, 4);
  std::deque<StartedCall> waiting(2);
  for (StartedCall& call : waiting) area->put(call.context(), call.done(), number(5));
  EXPECT_EQ(waiting[0].times() + waiting[1].times(), 0);
  waiting[0].cancel();
  EXPECT_EQ(waiting[0].error(), "Cancelled: the operation was cancelled");
  StartedCall third;
  area->get(third.context(), third.done());
  EXPECT_EQ(number_of(third), 3);
  EXPECT_EQ(waiting[1].times(), 1);
  EXPECT_EQ(area->size(), 2);
  area->clear();
  EXPECT_EQ(area->size(), 0);
}

TEST(StagingArea, CountsBytes) {
  const auto area = area_of({.memory = 20});
  put(*area, 1);
  put(*area, 2);
  StartedCall more(0), never(0);
  area->put(more.context(), more.done(), number(3));
  EXPECT_EQ(more.times(), 0);
  area->put(never.context(), never.done(), {Tensor::vector<int64_t>({1, 2, 3})});
  EXPECT_EQ(never.error(),
            "ResourceExhausted: Attempted to insert tensors with combined size of 24 bytes into "
            "staging area area with a memory limit of 20");
  area->clear();
  EXPECT_EQ(more.times(), 1);
  Tensor text(DType::kString, Shape({1}));
  text.data<StringElement>()[0] = StringElement("four");
  EXPECT_EQ(staged_bytes({&text, 1}), 12);
}

// A crowd: nobody stands in the way of another.
TEST(StagingArea, LetsEachPeekWaitForItsOwn) {
  const auto area = area_of();
  StartedCall far, near, refused;
  area->peek(far.context(), far.done(), 1);
  area->peek(near.context(), near.done(), 0);
  area->peek(refused.context(), refused.done(), -1);
  EXPECT_EQ(refused.error(),
            "InvalidArgument: index must not be negative, it is -1 for staging area area");
  put(*area, 7);
  EXPECT_EQ(number_of(near), 7);
  EXPECT_EQ(far.times(), 0);
  put(*area, 8);
  EXPECT_EQ(number_of(far), 8);
  EXPECT_EQ(area->size(), 2);
}

TEST(StagingArea, BelongsToAName) {
  ResourceManager resources;
  const DType types[] = {DType::kInt64}, others[] = {DType::kInt32};
  const auto named = [&](StagingLimits limits, std::span<const DType> wanted) {
    return named_staging_area(resources, "", "x", limits, wanted);
  };
  const auto area = named({}, {});
  EXPECT_EQ(named({}, types).get(), area.get());
  EXPECT_EQ(error_of([&] { named({}, others); }),
            "InvalidArgument: Mismatch stage/unstage: staging area x has dtypes [int64], the "
            "operation has [int32]");
  EXPECT_EQ(error_of([&] { named({.capacity = 1}, types); }),
            "InvalidArgument: staging area x has capacity 0 and memory_limit 0; it is asked for "
            "with capacity 1 and memory_limit 0");
  EXPECT_EQ(error_of([&] { named_staging_area(resources, "", "", {}, types); }),
            "InvalidArgument: shared_name is empty: outside of a graph it says which staging area "
            "is meant");
}

}  // namespace
}  // namespace treenail
