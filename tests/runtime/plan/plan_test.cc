// SPDX-License-Identifier: Apache-2.0
// What a plan decides that no result tells.
#include "framework/runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "framework/runtime/state/resource_manager.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;

// What is fetched is computed in its own memory along the chain, and no step hands it on.
TEST(Plan, OperationsThatWorkInPlaceShareASlot) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {4}, "x");
  Output y = x;
  for (int i = 0; i < 3; ++i) y = b.op("Softmax", {y});
  ResourceManager resources;
  const std::vector<Output> feeds = {x}, fetches = {y};
  const std::vector<PartialShape> shapes = {{4}};
  const auto plan =
      make_plan(make_topology(*b.graph, feeds, fetches, {}, resources, {}), shapes, resources);
  ASSERT_EQ(plan->nodes.size(), 3u);
  const int32_t slot = plan->fetch_slots[0];
  EXPECT_EQ(plan->nodes[0].fresh.size(), 1u);
  for (const PlanNode& p : plan->nodes) {
    EXPECT_EQ(p.first_output, slot);
    EXPECT_TRUE(p.counted.empty());
  }
  EXPECT_EQ(plan->nodes[2].inputs[0], slot);
  EXPECT_EQ(plan->run_slots.size(), 2u) << "the feed's and this one";
}

}  // namespace
}  // namespace treenail
