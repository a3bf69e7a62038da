// SPDX-License-Identifier: Apache-2.0
// What a plan decides that no result tells.
#include "framework/runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
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

// What is reduced over ranks is computed where they may read it, also along a chain that works in
// place and under another shape; several values are put together, what is fetched has its own, and
// what is small is copied.
TEST(Plan, WhatAnOperationWantsInItsOwnMemoryIsComputedThere) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {40'000}, "x");
  const Output shape = b.constant(Tensor::vector<int32_t>({200, 200}));
  const Output chain = b.op("Softmax", {b.op("Softmax", {x}, {}, "chain")});
  const Output alone = b.op("CollectiveAllReduce", {b.op("Reshape", {chain, shape})});
  const Output together = b.op("CollectiveAllReduce", {b.op("Softsign", {x}), x});
  const Output fetched = b.op("LogSoftmax", {x}, {}, "fetched");
  const Output of_fetched = b.op("CollectiveAllReduce", {fetched});
  const Output mean = b.op("Mean", {x, b.constant(Tensor::vector<int32_t>({0}))}, {}, "small");
  const Output of_small = b.op("CollectiveAllReduce", {mean});
  ResourceManager resources;
  const std::vector<Output> feeds = {x};
  const std::vector<Output> fetches = {alone, together, fetched, of_fetched, of_small};
  const std::vector<PartialShape> shapes = {{40'000}};
  const auto plan =
      make_plan(make_topology(*b.graph, feeds, fetches, {}, resources, {}), shapes, resources);
  std::vector<std::string> own, ordinary;
  for (const PlanNode& p : plan->nodes) {
    for (const int32_t slot : p.fresh) {
      const bool chosen = plan->slots[static_cast<size_t>(slot)].allocate != nullptr;
      (chosen ? own : ordinary).emplace_back(p.node->original_name());
    }
  }
  EXPECT_EQ(own, std::vector<std::string>{"chain"});
  EXPECT_EQ(ordinary, std::vector<std::string>{"fetched"});
}

// One after the other they are not there together, side by side they may be.
TEST(Plan, WhatIsComputedThereCountsAsLongAsItIsUsed) {
  constexpr int64_t kBytes = 40'000 * sizeof(float);
  const auto peak = [](bool in_a_row) {
    GraphBuilder b;
    const Output x = b.placeholder(DType::kFloat32, {40'000}, "x");
    Output last = x;
    std::vector<Node*> all;
    for (int i = 0; i < 20; ++i) {
      const Output scale = b.constant(Tensor::scalar(static_cast<float>(i)));
      last = b.op("CollectiveAllReduce", {b.op("Mul", {in_a_row ? last : x, scale})});
      all.push_back(last.node);
    }
    Node* const end = &b.node("NoOp", {}, {}, "end", all);
    ResourceManager resources;
    const std::vector<Output> feeds = {x};
    const std::vector<Node*> targets = {end};
    const std::vector<PartialShape> shapes = {{40'000}};
    return make_plan(make_topology(*b.graph, feeds, {}, targets, resources, {}), shapes, resources)
        ->memories[0]
        .peak_bytes;
  };
  EXPECT_LE(peak(true), 3 * kBytes);
  EXPECT_GE(peak(false), 20 * kBytes);
}

}  // namespace
}  // namespace treenail
