// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/staging_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/runtime/state/resource_manager.h"
#include "tests/runtime/state/started_call.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using testing::StartedCall;

const std::vector<DType> kTypes = {DType::kInt64, DType::kInt64};

IntrusivePtr<StagingMap> pairs(StagingLimits limits = {}) {
  const auto map = make_counted<StagingMap>("map", StagingMap::Kind{limits, true});
  map->agree(kTypes);
  return map;
}

StagingMap::Part places(const std::vector<int32_t>& indices) {
  return {indices, std::vector<DType>(indices.size(), DType::kInt64)};
}

std::string put(StagingMap& map, int64_t key, const std::vector<int32_t>& indices, int64_t value) {
  StartedCall call(0);
  const StagedTuple values(indices.size(), Tensor::scalar<int64_t>(value));
  map.put(call.context(), call.done(), key, places(indices), values);
  EXPECT_EQ(call.times(), 1);
  return call.error();
}

TEST(StagingMap, GivesTuplesThatAreComplete) {
  const auto map = pairs();
  StartedCall first(3), by_key(1), seen(2);
  map->get_any(first.context(), first.done(), places({0, 1}));
  map->get(by_key.context(), by_key.done(), 9, places({1}));
  map->peek(seen.context(), seen.done(), 9, places({0, 1}));
  EXPECT_EQ(put(*map, 3, {1}, 31), "");
  EXPECT_EQ(map->incomplete_size(), 1);
  EXPECT_EQ(first.times(), 0);
  EXPECT_EQ(put(*map, 3, {0}, 30), "");
  EXPECT_EQ(*first.output(0).data<int64_t>(), 3);
  EXPECT_EQ(*first.output(1).data<int64_t>(), 30);
  EXPECT_EQ(*first.output(2).data<int64_t>(), 31);
  EXPECT_EQ(put(*map, 9, {0, 1}, 9), "");
  EXPECT_EQ(by_key.error(), "");
  // Who came later finds a part taken.
  EXPECT_EQ(seen.error(),
            "InvalidArgument: the tensor at index 1 for key 9 has been taken out of staging area "
            "map already");
  EXPECT_EQ(map->size(), 1);
  map->clear();
  EXPECT_EQ(map->size(), 0);
}

TEST(StagingMap, WaitsForRoom) {
  const auto map = pairs({.capacity = 1, .memory = 40});
  EXPECT_EQ(put(*map, 1, {0, 1}, 1), "");
  StartedCall full(0), part(0);
  map->put(full.context(), full.done(), 2, places({0, 1}),
           {Tensor::scalar<int64_t>(2), Tensor::scalar<int64_t>(2)});
  EXPECT_EQ(full.times(), 0);
  EXPECT_EQ(put(*map, 3, {0}, 3), "");  // a part needs memory alone
  StartedCall taken(2);
  map->get(taken.context(), taken.done(), 1, places({0, 1}));
  EXPECT_EQ(full.times(), 1);
  EXPECT_EQ(map->size(), 1);
  map->put(part.context(), part.done(), 4, places({0}), {Tensor::vector<int64_t>({1, 2, 3})});
  EXPECT_EQ(part.times(), 0);
  part.cancel();
  EXPECT_EQ(part.error(), "Cancelled: the operation was cancelled");
  EXPECT_EQ(map->incomplete_size(), 1);
}

TEST(StagingMap, RefusesWhatDoesNotFit) {
  const auto map = pairs({.memory = 100});
  EXPECT_EQ(put(*map, 1, {1, 0}, 1),
            "InvalidArgument: Indices are not strictly ordered: indices[1] = 0 comes after 1");
  EXPECT_EQ(put(*map, 1, {2}, 1),
            "InvalidArgument: indices[0] = 2 is not in [0, 2), the tuples of staging area map");
  EXPECT_EQ(put(*map, 1, {0}, 1), "");
  EXPECT_EQ(put(*map, 1, {0, 1}, 1),
            "InvalidArgument: the tensor at index 0 for key 1 in staging area map was put already");
  EXPECT_EQ(put(*map, 1, {1}, 1), "");
  EXPECT_EQ(put(*map, 1, {1}, 1), "InvalidArgument: key 1 is in staging area map already");
  ResourceManager resources;
  named_staging_map(resources, "", "x", {{}, true}, kTypes);
  EXPECT_EQ(error_of([&] {
              named_staging_map(resources, "", "x", {{}, false}, kTypes);
            }),
            "InvalidArgument: staging area x is an ordered map; it is asked for as an unordered "
            "one");
}

}  // namespace
}  // namespace treenail
